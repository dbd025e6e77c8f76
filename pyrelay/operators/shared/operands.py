"""Torch bodies on operands that may be Python numbers, or absent.

At run time an integer or bool of rank 0 is a Python number or a 0-d tensor; a body that needs a
tensor makes one here. It never has numbers alone: where a call whose result is a tensor has only
numbers, they come to the body as tensors on the program's device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...ir.types import UNIT, TupleType

if TYPE_CHECKING:
    from ..builder import Value


def as_tensor(torch: Any, value: Any, like: Any = None) -> Any:
    """Return the value as a tensor, on the device of `like` if that is a tensor."""
    if isinstance(value, torch.Tensor):
        return value
    device = like.device if isinstance(like, torch.Tensor) else None
    return torch.as_tensor(value, device=device)


def as_tensors(torch: Any, values: Sequence[Any]) -> list[Any]:
    """Return operands of one dtype as tensors: a number takes the dtype, and the device, of the
    tensors among them."""
    like = next((v for v in values if isinstance(v, torch.Tensor)), None)
    if like is None:
        return [as_tensor(torch, v) for v in values]
    return [
        v
        if isinstance(v, torch.Tensor)
        else torch.as_tensor(v, dtype=like.dtype, device=like.device)
        for v in values
    ]


def as_positions(torch: Any, value: Any, like: Any = None) -> Any:
    """Return integers as a tensor of int64, on the device of `like`: what torch indexes with."""
    found = as_tensor(torch, value, like)
    return found if found.dtype == torch.int64 else found.to(torch.int64)


def existing(torch: Any, numbers: Any, rows: int) -> Any:
    """Return numbers as positions. Raises IndexError unless each is that of a row.

    On a GPU they are not looked at: the host would wait for the answer.
    """
    numbers = as_positions(torch, numbers)
    if numbers.device.type == "cpu" and numbers.numel():
        low, high = (int(bound) for bound in torch.aminmax(numbers))
        if low < 0 or high >= rows:
            raise IndexError(f"row {low if low < 0 else high} is out of range: there are {rows}")
    return numbers


def on_tensor(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a body whose first operand may also be a Python number."""
    return lambda torch, x, *rest: body(torch, as_tensor(torch, x), *rest)


def is_given(value: Value) -> bool:
    """Return whether an operand of a gradient rule is present."""
    return value.ty != UNIT


def fields(pack: Value) -> list[Value]:
    """Return the fields of a tuple operand of a gradient rule."""
    assert isinstance(pack.ty, TupleType)
    return [pack[i] for i in range(len(pack.ty.fields))]
