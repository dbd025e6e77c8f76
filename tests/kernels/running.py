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
from tests.unit.passes.regions.kernels import kernel as kernel_of

CPU: Final = torch.device("cpu")
GUARDS: Final = Guards()
ACCESSES: Final = Accesses()
MOST_PROGRAMS: Final = 64
TOLERANCES: Final = {
    torch.float64: (1e-11, 1e-12),
    torch.float32: (2e-5, 2e-6),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
}
"""By dtype of a result; intermediate values of half types are kept in float32 in kernels."""


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
    assert_same(found, expected)
    assert_same(tuple(given), tuple(reference))  # what is overwritten, and what is not
    return found


def assert_same(found: Any, expected: Any) -> None:
    """Compare values; where one is a number so may the other be."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    found, expected = torch.as_tensor(found), torch.as_tensor(expected)
    rtol, atol = TOLERANCES.get(found.dtype, (0, 0))
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


def kernels(source: str, *forms: Form, is_wide: bool = False) -> tuple[Kernel, ...]:
    """Give the kernels of a function for forms of its operands, contiguous if none are given."""
    function = kernel_of(source)
    operands = forms or (Form.CONTIGUOUS,) * len(function.params)
    return lower(function)(Layout(tuple(operands), is_wide)).kernels


def text(source: str, *forms: Form, is_wide: bool = False) -> str:
    """Give the text of the kernels of a function."""
    return "\n\n".join(k.text for k in kernels(source, *forms, is_wide=is_wide))
