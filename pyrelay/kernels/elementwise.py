"""Whether an operator says what the elements of a call are: some say it of most calls only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from ..ir.declaration.elements import Place
from ..ir.declaration.lowering import Elementwise, Scatter, inside
from ..ir.dims import Dim
from ..ir.expr import Call, type_of
from ..ir.op import Op
from ..ir.types import UNIT, DType, TupleType, Type
from .reading import dtype_of, shape_of
from .recording import Recording


def is_said(call: Call) -> bool:
    """Return whether the body of an operator says something of a call; True where it has none."""
    assert isinstance(call.callee, Op)
    types = [type_of(a) for a in call.args]
    match inside(call.callee.lowering):
        case Elementwise(body):
            ty = type_of(call)
            over = ty.fields[0] if isinstance(ty, TupleType) else ty
        case Scatter(over=operand, body=body):
            over = types[operand]
        case _:
            return True
    record = Recording()
    place = Place(record.places.index("i", shape_of(over)), shape_of(over))
    elements = record.elements(dtype_of(over), place.index)
    operands = [_operand(t) for t in types]
    return body(elements, place, *operands, *call.attrs.values()) is not None


@final
@dataclass(frozen=True, slots=True)
class _Unread:
    """An operand of which only the type matters: an `ir.declaration.elements.Source`."""

    shape: tuple[Dim, ...]
    dtype: DType

    def __call__(self, *index: Dim) -> Any:
        return self

    def within(self, index: Sequence[Dim], inside: Any, otherwise: Any) -> Any:
        """Return an element."""
        return self


def _operand(ty: Type) -> Any:
    if ty == UNIT:
        return None
    if isinstance(ty, TupleType):
        return tuple(map(_operand, ty.fields))
    return _Unread(shape_of(ty), dtype_of(ty))
