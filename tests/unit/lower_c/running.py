"""Runs kernel functions in C and compares what they give with the evaluator.

Operands lie between guards; a kernel that is left to torch fails the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.kernels.backend import KernelFunction
from pyrelay.lower_c.backend import CBackend
from pyrelay.runtime.compile.evaluator import evaluate
from tests.kernels.guards import Guards
from tests.tolerances import assert_kernel, forms_of
from tests.unit.kernels.kernels import kernel as kernel_of
from tests.unit.kernels.recognised import group_of

CPU: Final = torch.device("cpu")
GUARDS: Final = Guards()
BACKEND: Final = CBackend()


def left_to_torch(*operands: Any) -> Any:
    """Fail: the kernel was to run in C."""
    raise AssertionError("a kernel was left to torch")


def kernel(function: Function) -> KernelFunction:
    """Return a function as the kernel function that fusion would make of it."""
    return KernelFunction("kernel.1", group_of(function))


def run(function: Function, operands: Sequence[Any]) -> Any:
    """Return what the C of a function gives; operands that it overwrites are overwritten."""
    found = BACKEND.kernel(kernel(function), CPU, left_to_torch)(*operands)
    GUARDS.check()
    return found


def check(source: str | Function, *operands: Any) -> Any:
    """Compare the C of a function with the evaluator; return its result."""
    function = kernel_of(source) if isinstance(source, str) else source
    reference, given = ([GUARDS.copy(o, CPU) for o in operands] for _ in range(2))
    expected = evaluate(Module({"main": function}, {}), "main", reference)
    found = run(function, given)
    assert_kernel(found, expected)
    assert_kernel(tuple(given), tuple(reference))  # what is overwritten, and what is not
    assert forms_of(found) == forms_of(expected)
    return found


def text(source: str) -> str:
    """Return the C of a function whose operands lie row by row."""
    return BACKEND.text(kernel(kernel_of(source)))
