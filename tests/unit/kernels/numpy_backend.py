"""A backend that runs pointwise kernels with numpy, written against the public protocol alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
import torch

from pyrelay.ir.expr import Call, Constant, Expr, If, Tuple, Var
from pyrelay.ir.op import Op
from pyrelay.ir.types import TensorType
from pyrelay.kernels.backend import Backend, Device, KernelFunction, Run
from pyrelay.kernels.groups import Kind
from pyrelay.kernels.reading import results_of, straight_line

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negative": np.negative,
    "exp": np.exp,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "maximum": np.maximum,
}
"""Operators and the functions of numpy that compute them, element by element."""


@final
class NumpyBackend(Backend):
    """Runs kernels made of the operators above on a CPU; leaves others to torch."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    @property
    def name(self) -> str:
        return "numpy"

    @property
    def description(self) -> str:
        return "numpy runs its pointwise kernels"

    def unavailable(self, device: Device) -> str | None:
        return None if device.type == "cpu" else "numpy has no memory on other devices"

    def kernel(self, kernel: KernelFunction, device: Any, fallback: Run) -> Run:
        if why_not(kernel) is not None:
            return fallback

        def run(*operands: Any) -> Any:
            self.ran.append(kernel.name)
            found = values(kernel, [_array(o) for o in operands])
            return found[0] if len(found) == 1 else tuple(found)

        return run

    def text(self, kernel: KernelFunction) -> str:
        why = why_not(kernel)
        if why is not None:
            return f"# {kernel.name}: {why}"
        lines = (line for b in straight_line(kernel.function.body)[0] if (line := written(b)))
        return "\n".join((f"# {kernel.name}", *lines))


def why_not(kernel: KernelFunction) -> str | None:
    """Return why a kernel is left to torch."""
    if kernel.group.kind is not Kind.POINTWISE or kernel.overwritten:
        return f"{kernel.group.kind.value} kernels are not supported"
    for binding in straight_line(kernel.function.body)[0]:
        value = binding.value
        if isinstance(value, Call) and isinstance(value.callee, Op):
            if value.callee.name not in FUNCTIONS:
                return f"{value.callee.name} is not supported"
        elif isinstance(value, Call | If):
            return "control flow is not supported"
    return None


def values(kernel: KernelFunction, operands: list[Any]) -> list[torch.Tensor]:
    """Return the results of a kernel."""
    known: dict[Expr, Any] = dict(zip(kernel.function.params, operands, strict=True))

    def value(atom: Expr) -> Any:
        if isinstance(atom, Constant):
            dtype = atom.ty.dtype.name if isinstance(atom.ty, TensorType) else None
            return np.asarray(atom.value, dtype)
        return known[atom]

    for binding in straight_line(kernel.function.body)[0]:
        bound = binding.value
        if isinstance(bound, Call) and isinstance(bound.callee, Op):
            function = FUNCTIONS[bound.callee.name]
            known[binding.var] = function(*(value(a) for a in bound.args))
        elif isinstance(bound, Var | Constant):
            known[binding.var] = value(bound)
        else:
            assert isinstance(bound, Tuple)
    return [torch.from_numpy(np.array(value(r))) for r in results_of(kernel.function.body)]


def written(binding: Any) -> str:
    """Return a binding as a line of Python."""
    value = binding.value
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return ""
    args = ", ".join(a.name if isinstance(a, Var) else "c" for a in value.args)
    return f"{binding.var.name} = np.{FUNCTIONS[value.callee.name].__name__}({args})"


def _array(operand: Any) -> Any:
    return operand.detach().numpy() if isinstance(operand, torch.Tensor) else operand
