"""Runs kernel functions in Triton's interpreter, or on a GPU, and compares what they give.

The reference is the function in float64 (`exact.py`), and the evaluator for what computes in
float64 itself. Operands and results lie between guards.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.kernels.calling import Form, Layout
from pyrelay.lower_triton.kernel import Kernel
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.runtime.compile.evaluator import evaluate
from tests.kernels.accesses import Accesses
from tests.kernels.exact import assert_close, has_float64
from tests.kernels.guards import Guards
from tests.tolerances import assert_kernel, forms_of
from tests.unit.kernels.kernels import kernel as kernel_of
from tests.unit.kernels.kernels import lower
from tests.unit.kernels.recognised import group_of

IS_INTERPRETED: Final = os.environ.get("TRITON_INTERPRET") == "1"
CPU: Final = torch.device("cpu")
DEVICE: Final = CPU if IS_INTERPRETED else torch.device("cuda")
"""Where kernels run: in the interpreter, or with `pytest -m gpu` on a GPU."""
SEED: Final = int(
    os.environ.get("KERNELS_SEED") or (0 if "CI" in os.environ else secrets.randbits(31))
)
"""Inputs are new ones in every run but in CI; a test that fails says which."""
GUARDS: Final = Guards()
ACCESSES: Final = Accesses()
MOST_PROGRAMS: Final = 64


def run(function: Function, operands: Sequence[Any], prepared: KernelCall | None = None) -> Any:
    """Return what the kernels of a function give, compared with float64; operands that they
    overwrite are overwritten."""
    found, after = launch(function, operands, prepared)
    if not has_float64(function):
        assert_close(function, operands, found, after)
    overwritten = {o.overwrites for o in group_of(function).outputs}
    for number, operand in enumerate(operands):
        if number in overwritten:
            operand.copy_(after[number])
        elif isinstance(operand, torch.Tensor):
            torch.testing.assert_close(after[number], operand, rtol=0, atol=0, equal_nan=True)
    return found


def launch(
    function: Function, operands: Sequence[Any], prepared: KernelCall | None = None
) -> tuple[Any, list[Any]]:
    """Return what the kernels of a function give, and its operands afterwards, between guards."""
    call = prepared or KernelCall(function, lower(function), DEVICE)
    given = [GUARDS.copy(o, DEVICE) for o in operands]
    found = _here(call(*given))
    after = [_here(o) for o in given]
    GUARDS.check()
    ACCESSES.forget()  # what was made may be given back now
    if IS_INTERPRETED:
        for plan in call._prepared.values():
            for started in plan.launches:
                assert np.prod(started.grid) <= MOST_PROGRAMS, started.grid
    return found, after


def check(source: str | Function, *operands: Any) -> Any:
    """Compare the kernels of a function with the evaluator; return what the kernels gave."""
    function = kernel_of(source) if isinstance(source, str) else source
    reference, given = ([GUARDS.copy(o, CPU) for o in operands] for _ in range(2))
    expected = evaluate(Module({"main": function}, {}), "main", reference)
    found = run(function, given)
    if has_float64(function):
        assert_kernel(found, expected)
        assert_kernel(tuple(given), tuple(reference))  # what is overwritten, and what is not
    assert forms_of(found) == forms_of(expected)
    return found


def _here(value: Any) -> Any:
    """Return a value on the CPU."""
    if isinstance(value, tuple):
        return tuple(map(_here, value))
    return value.cpu() if isinstance(value, torch.Tensor) else value


def kernels(source: str, *forms: Form, is_wide: bool = False) -> tuple[Kernel, ...]:
    """Return the kernels of a function for forms of its operands, contiguous if none are given."""
    function = kernel_of(source)
    operands = forms or (Form.CONTIGUOUS,) * len(function.params)
    return lower(function)(Layout(tuple(operands), is_wide)).kernels


def text(source: str, *forms: Form, is_wide: bool = False) -> str:
    """Return the text of the kernels of a function."""
    return "\n\n".join(k.text for k in kernels(source, *forms, is_wide=is_wide))
