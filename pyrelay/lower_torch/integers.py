"""Integers of rank 0 at run time: Python's own, within the range of their dtype.

Those of 64 bits stop the program where they would leave it; narrower ones wrap around, as elements
of tensors do. A 0-d tensor counts as the number in it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import torch

from ..operators.host.conversions import integer_of

LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1


def number_of(value: torch.Tensor | float) -> Any:
    """Return the number in a 0-d tensor, and a number itself."""
    return value.item() if isinstance(value, torch.Tensor) else value


def fitted(value: torch.Tensor | float, dtype: torch.dtype) -> int:
    """Return an integer as one of a dtype. Raises OverflowError for one beyond 64 bits."""
    number = int(number_of(value))
    if dtype != torch.int64:
        return wrapped(number, dtype)
    if LOWEST <= number <= HIGHEST:
        return number
    raise OverflowError("an integer does not fit into 64 bits")


def wrapped(number: int, dtype: torch.dtype) -> int:
    """Return the integer of a dtype that is equal modulo the number of its values."""
    info = torch.iinfo(dtype)
    return (number - info.min) % (1 << info.bits) + info.min


def integer_power(
    base: torch.Tensor | int, exponent: torch.Tensor | int, dtype: torch.dtype
) -> int:
    """Return an integer power. Raises ValueError for a negative exponent, as torch does, and
    OverflowError for a power beyond 64 bits, which is not computed."""
    base, exponent = int(number_of(base)), int(number_of(exponent))
    if exponent < 0:
        raise ValueError("an integer to a negative integer power is not an integer")
    if dtype != torch.int64:
        return wrapped(pow(base, exponent, 1 << torch.iinfo(dtype).bits), dtype)
    if abs(base) > 1 and exponent * (base.bit_length() - 1) > 64:
        raise OverflowError("an integer does not fit into 64 bits")
    return fitted(base**exponent, dtype)


def truncated(value: torch.Tensor | float, dtype: torch.dtype) -> int:
    """Return a float without its fraction. Raises NotAnInteger where no integer of the dtype is
    that."""
    info = torch.iinfo(dtype)
    return integer_of(number_of(value), info.min, info.max + 1)


def exactly(name: str, *operands: torch.Tensor | int) -> int:
    """Return the value of an operator on integers of 64 bits, some of which are 0-d tensors or
    whose result is out of range. Raises OverflowError."""
    return fitted(_OPERATORS[name](*map(number_of, operands)), torch.int64)


_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "neg": operator.neg,
    "abs": abs,
}
