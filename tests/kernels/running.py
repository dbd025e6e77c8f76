"""Runs kernel functions in Triton's interpreter and compares them with the reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.lower_triton.kernel import Form, Kernel, Layout
from pyrelay.lower_triton.launch import KernelCall
from pyrelay.lower_triton.lower import lower
from pyrelay.runtime.evaluator import evaluate
from tests.kernels.accesses import Accesses
from tests.kernels.guards import Guards
from tests.tolerances import assert_kernel
from tests.unit.passes.regions.kernels import kernel as kernel_of

CPU: Final = torch.device("cpu")
GUARDS: Final = Guards()
ACCESSES: Final = Accesses()
MOST_PROGRAMS: Final = 64


def run(function: Function, operands: Sequence[Any], prepared: KernelCall | None = None) -> Any:
    """Give what the kernels of a function give."""
    call = prepared or KernelCall(function, lower(function), CPU)
    found = call(*operands)
    for plan in call._prepared.values():
        for launch in plan.launches:
            assert np.prod(launch.grid) <= MOST_PROGRAMS, launch.grid
    return found


def check(source: str | Function, *operands: Any) -> Any:
    """Compare the kernels of a function with the evaluator; give what the kernels gave."""
    function = kernel_of(source) if isinstance(source, str) else source
    reference = [GUARDS.copy(o, CPU) for o in operands]
    given = [GUARDS.copy(o, CPU) for o in operands]
    expected = evaluate(Module({"main": function}, {}), "main", reference)
    found = run(function, given)
    assert_kernel(found, expected)
    assert_kernel(tuple(given), tuple(reference))  # what is overwritten, and what is not
    return found


def kernels(source: str, *forms: Form, is_wide: bool = False) -> tuple[Kernel, ...]:
    """Give the kernels of a function for forms of its operands, contiguous if none are given."""
    function = kernel_of(source)
    operands = forms or (Form.CONTIGUOUS,) * len(function.params)
    return lower(function)(Layout(tuple(operands), is_wide)).kernels


def text(source: str, *forms: Form, is_wide: bool = False) -> str:
    """Give the text of the kernels of a function."""
    return "\n\n".join(k.text for k in kernels(source, *forms, is_wide=is_wide))
