"""Pointwise arithmetic on torch values: the meaning of `Scalars` that the reference evaluator uses.

A value is a tensor, or a Python int or bool where the program computes with rank-0 integers, or a
Python float where a body makes a constant. Integers follow Python (`//` and `%` round towards minus
infinity), floats follow torch. The functions at the end are also called by generated code, where
the text of an operation would have to distinguish numbers from tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch
from torch.nn import functional

from ..ir.types import DType, DTypeKind
from .activations import TorchFunctions
from .constants import kernel, torch_dtype
from .integers import fitted, integer_power, truncated

TorchValue: TypeAlias = torch.Tensor | float

_LOGICAL: Final[dict[str, Callable[[Any, Any], TorchValue]]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


_BITS: Final[dict[str, Callable[[Any, Any], TorchValue]]] = {
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


def is_tensor(value: TorchValue) -> bool:
    """Return whether the value is a tensor rather than a Python number."""
    return isinstance(value, torch.Tensor)


def tensor_of(value: TorchValue, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return a number as a 0-d tensor, and a tensor in the dtype."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype)
    return torch.scalar_tensor(value, dtype=dtype, device=device)


def cast_integer(value: TorchValue, dtype: torch.dtype) -> TorchValue:
    """Return a number or tensor in an integer dtype; numbers stay numbers."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype)
    return truncated(value, dtype) if isinstance(value, float) else fitted(value, dtype)


def cast_bool(value: TorchValue) -> TorchValue:
    """Return whether a number or the elements of a tensor are not zero; numbers give bools."""
    return value.to(torch.bool) if isinstance(value, torch.Tensor) else bool(value)


def sign_of(value: TorchValue) -> TorchValue:
    """Return -1, 0 or 1 by sign."""
    if isinstance(value, torch.Tensor):
        return torch.sign(value)
    return (value > 0) - (value < 0)


class TorchScalars(TorchFunctions):
    """The arithmetic of one call: `dtype` is that of its operands, `device` where numbers go."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._dtype: Final = dtype
        self._device: Final = device

    def tensor(self, a: TorchValue, /) -> torch.Tensor:
        if isinstance(a, torch.Tensor):
            return a
        return torch.scalar_tensor(a, dtype=self._dtype, device=self._device)

    def _torch(self, function: Callable[..., torch.Tensor], *values: TorchValue) -> torch.Tensor:
        return function(*map(self.tensor, values))

    def function(self, name: str, a: TorchValue, /) -> TorchValue:
        return self._torch(getattr(torch, name), a)

    def const(self, value: float, /) -> TorchValue:
        return value

    def add(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return a + b

    def sub(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return a - b

    def mul(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return a * b

    def div(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return a / b

    def floordiv(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return a // b

    def mod(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return a % b

    def pow(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        if self._dtype.is_floating_point or is_tensor(a) or is_tensor(b):
            return a**b
        return integer_power(int(a), int(b), self._dtype)

    def neg(self, a: TorchValue, /) -> TorchValue:
        return -a

    def abs(self, a: TorchValue, /) -> TorchValue:
        return abs(a)

    def sign(self, a: TorchValue, /) -> TorchValue:
        return sign_of(a)

    def rounded(self, name: str, a: TorchValue, /) -> TorchValue:
        return self.function(name, a) if self._dtype.is_floating_point else a

    def minimum(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        if is_tensor(a) or is_tensor(b):
            return self._torch(torch.minimum, a, b)
        return min(a, b)

    def maximum(self, a: TorchValue, b: TorchValue, /) -> TorchValue:
        if is_tensor(a) or is_tensor(b):
            return self._torch(torch.maximum, a, b)
        return max(a, b)

    def compared(self, name: str, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return getattr(operator, name)(a, b)

    def logical(self, name: str, a: TorchValue, b: TorchValue, /) -> TorchValue:
        return _LOGICAL[name](cast_bool(a), cast_bool(b))

    def logical_not(self, a: TorchValue, /) -> TorchValue:
        return torch.logical_not(a) if isinstance(a, torch.Tensor) else not a

    def bits(self, a: TorchValue, operator: str, b: TorchValue, /) -> TorchValue:
        return _BITS[operator](a, b)

    def bit_not(self, a: TorchValue, /) -> TorchValue:
        if isinstance(a, torch.Tensor):
            return torch.bitwise_not(a)
        return not a if isinstance(a, bool) else ~int(a)

    def where(self, condition: TorchValue, a: TorchValue, b: TorchValue, /) -> TorchValue:
        if isinstance(condition, torch.Tensor):
            return torch.where(condition, self.tensor(a), self.tensor(b))
        if not is_tensor(a) and not is_tensor(b):
            return a if condition else b
        # Through torch all the same, since the arms broadcast against each other.
        chosen = torch.scalar_tensor(condition, dtype=torch.bool, device=self._device)
        return torch.where(chosen, self.tensor(a), self.tensor(b))

    def isnan(self, a: TorchValue, /) -> TorchValue:
        return self._torch(torch.isnan, a) if self._dtype.is_floating_point else a != a

    def isfinite(self, a: TorchValue, /) -> TorchValue:
        return self._torch(torch.isfinite, a) if self._dtype.is_floating_point else a == a

    def cast(self, a: TorchValue, dtype: DType, /) -> TorchValue:
        match dtype.kind:
            case DTypeKind.FLOAT:
                return tensor_of(a, torch_dtype(dtype), self._device)
            case DTypeKind.INT:
                return cast_integer(a, torch_dtype(dtype))
            case DTypeKind.BOOL:
                return cast_bool(a)

    def relu(self, a: TorchValue, /) -> TorchValue:
        return torch.relu(a) if isinstance(a, torch.Tensor) else max(a, 0)

    def functional(self, name: str, /, *args: Any, **named: Any) -> TorchValue:
        return getattr(functional, name)(*args, **named)

    def aten(self, name: str, /, *args: Any, **named: Any) -> TorchValue:
        return kernel(name)(*args, **named)
