"""Captured numbers that change: read anew by each run instead of being part of the program.

In a translated program such a number is a literal, so it takes the dtype of the tensor it meets;
inference turns each mention into a call of the operator that reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self, final

from ..ir.declaration import attribute_kinds as kinds
from ..ir.op import Effect, Library, NoGradient, Op, RuleCall, ShapeBehaviour, attribute
from ..ir.types import DType, TensorType, Type, float32


@final
class CapturedNumber(float):
    """A captured number: its current value, and the operator that reads the later ones."""

    op: Op

    @classmethod
    def of(cls, name: str, read: Callable[[], float]) -> Self:
        """Return a captured number by its name and what reads it."""
        found = cls(read())
        found.op = _reader(name, read)
        return found


@final
class CapturedInteger(int):
    """A captured integer that changes. It is no size, since its value is not known before."""

    op: Op

    @classmethod
    def of(cls, name: str, read: Callable[[], int]) -> Self:
        """Return a captured integer by its name and what reads it."""
        found = cls(read())
        found.op = _reader(name, read)
        return found


CAPTURED: Final = (CapturedNumber, CapturedInteger)
"""The classes of numbers that each run reads."""


def _type(call: RuleCall) -> Type:
    dtype = call.attrs["dtype"]
    assert isinstance(dtype, DType)
    return TensorType((), dtype)


def _reader(name: str, read: Callable[[], float]) -> Op:
    def body(torch: Any, device: Any, dtype: Any) -> Any:
        number = read()
        if isinstance(number, int) and not dtype.is_floating_point:
            return number  # it may steer control, which takes Python's integers
        return torch.tensor(number, dtype=dtype, device=device)

    return Op(
        name=f"captured_{name}",
        doc=f"The number that `{name}` is when the program runs.",
        params=(attribute("dtype", float32, kinds.dtype),),
        type_rule=_type,
        effect=Effect.IO,
        shape=ShapeBehaviour.FACTORY,
        lowering=Library(body),
        grad=NoGradient("a captured number is no parameter"),
        samples=tuple,
    )
