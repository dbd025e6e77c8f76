"""Calls on many rows at once: what a batching rule works with.

An operand is either a *row*, of which all values lie side by side along a new first dim, or the
same for every row. An operand that is a tuple is a row where one of its fields is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

from ...dataclass import dataclass
from ...ir.calls.attributes import bind_attrs
from ...ir.dims import ONE, Dim
from ...ir.expr import Call, type_of
from ...ir.op import Op
from ...ir.types import SizeType, TensorType, TupleType, Type, int64
from ...operators.builder import Builder, Value
from ...operators.primitive.create import arange

Mask: TypeAlias = "bool | tuple[Mask, ...]"
"""Which tensors of a value are rows: one truth for a tensor, one mask a field for a tuple."""


def is_any(mask: Mask) -> bool:
    """Return whether a value holds rows anywhere."""
    return any(map(is_any, mask)) if isinstance(mask, tuple) else mask


def rows_type(ty: Type, mask: Mask, count: Dim) -> Type:
    """Return the type of a value of which some tensors are rows: `count` is their first dim. A
    size that is a row is a tensor of integers."""
    if isinstance(ty, TupleType):
        masks = mask if isinstance(mask, tuple) else (mask,) * len(ty.fields)
        return TupleType(
            tuple(rows_type(t, m, count) for t, m in zip(ty.fields, masks, strict=True))
        )
    if not is_any(mask):
        return ty
    match ty:
        case TensorType(shape):
            return replace(ty, shape=(count, *shape))
        case SizeType():
            return TensorType((count,), int64)
        case _:
            raise AssertionError(ty)


def has_rows(ty: Type) -> bool:
    """Return whether values of a type may lie side by side: tensors, and tuples of them."""
    if isinstance(ty, TupleType):
        return all(map(has_rows, ty.fields))
    return isinstance(ty, TensorType | SizeType)


@final
@dataclass(frozen=True, slots=True)
class RowsCall:
    """A call whose operands are all rows at once, or the same for each."""

    builder: Builder
    call: Call
    operands: Sequence[Value]
    is_row: Sequence[Mask]
    count: Dim
    """The number of rows."""

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the call on one row."""
        return self.call.attrs

    @property
    def ty(self) -> Type:
        """The type of the value of the call on one row."""
        return type_of(self.call)

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of the value of the call on one row, which is a tensor."""
        assert isinstance(self.ty, TensorType)
        return self.ty.shape

    def has(self, operand: int) -> bool:
        """Return whether an operand is a row, or has one in it."""
        return is_any(self.is_row[operand])

    def row_shape(self, operand: int = 0) -> tuple[Dim, ...]:
        """Return the shape of an operand in the call on one row."""
        return self.operands[operand].shape[self.has(operand) :]

    def rank(self, operand: int = 0) -> int:
        """Return the rank of an operand in the call on one row."""
        return len(self.row_shape(operand))

    def emit(self, operands: Sequence[Value], **attrs: Any) -> Value:
        """Return the value of the operator on other operands, with some attributes replaced."""
        assert isinstance(self.call.callee, Op)
        return self.builder.call(self.call.callee, operands, {**self.attrs, **attrs})

    def emit_as(self, ty: Type, operands: Sequence[Value], **attrs: Any) -> Value:
        """Return the value of the operator as `emit` does, where its type is known: the sizes that
        it finds while it runs keep their names."""
        assert isinstance(self.call.callee, Op)
        bound = bind_attrs(self.call.callee, {**self.attrs, **attrs})
        atoms = tuple(v.atom for v in operands)
        made = replace(self.call, args=atoms, attrs=bound, ty=ty, span=self.builder.span)
        return self.builder.bind(made, self.call.callee.name)

    def padded(self, operand: int, rank: int) -> Value:
        """Return an operand whose rows broadcast to a rank as those of one row do."""
        value = self.operands[operand]
        missing = rank - self.rank(operand) if self.has(operand) else 0
        if missing <= 0:
            return value
        return value.reshape(self.count, *(ONE,) * missing, *value.shape[1:])

    def whole(self, operand: int) -> Value:
        """Return an operand as rows, the same one `count` times if it is none."""
        value = self.operands[operand]
        return value if self.has(operand) else self.repeated(value)

    def repeated(self, value: Value) -> Value:
        """Return rows that are all one value, without copying it."""
        return value.expand((self.count, *value.shape))

    def places(self, rank: int = 0) -> Value:
        """Return the numbers of the rows, with further dims of size 1."""
        numbers = self.builder.call(arange, (), {"end": self.count})
        return numbers.reshape(self.count, *(ONE,) * rank)

    def folded(self, operand: int, rank: int) -> Value:
        """Return an operand with the dim of its rows in front, or, where a row has `rank` dims,
        made one with the first of these, the batch."""
        value = self.whole(operand)
        if self.rank(operand) < rank:
            return value
        return value.reshape(self.count * value.shape[1], *value.shape[2:])


Rule: TypeAlias = Callable[[RowsCall], "Value | None"]


def reshaped(value: Value, ty: Type) -> Value:
    """Return a tensor, or each of a tuple of them, in the shape of a type."""
    if isinstance(ty, TupleType):
        return value.builder.tuple([reshaped(value[i], t) for i, t in enumerate(ty.fields)])
    assert isinstance(ty, TensorType)
    return value.reshape(*ty.shape)
