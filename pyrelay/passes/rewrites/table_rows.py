"""Rows that are added to a table, and their sum as one set of rows with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ...dataclass import dataclass
from ...ir.dims import ONE, Dim, product
from ...ir.expr import Call, Expr, type_of
from ...ir.op import Op
from ...ir.types import TensorType, int64
from ...operators.builder import Builder, Value
from ...operators.composite.table_rows import flat_rows
from ...operators.primitive.arithmetic import floor_divide, mod
from ...operators.primitive.compare import equal, where
from ...operators.primitive.create import arange
from ...operators.primitive.index import from_start
from ...operators.primitive.join import cat
from ...operators.primitive.view import reshape


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are added to a table, with their numbers, which may count from the end. `later` are
    the calls that multiply the sum by numbers, or give it the shape of the table, the last first.

    Rows that are `split` have a number for each of their elements, which is then a row by itself:
    zero but for the element.
    """

    rows: Expr
    numbers: Expr
    from_end: bool = False
    split: bool = False
    later: tuple[Call, ...] = ()

    @property
    def count(self) -> Dim:
        """How many rows they are."""
        ty = type_of(self.numbers)
        return product(ty.shape) if isinstance(ty, TensorType) else ONE


def side_by_side(builder: Builder, found: Sequence[Rows], table: TensorType) -> tuple[Value, Value]:
    """Return all rows of a table one after the other, and their numbers, counted from the start."""
    pairs = [_flat(builder, rows, table) for rows in found]
    if len(pairs) == 1:
        return pairs[0]
    rows, numbers = (builder.tuple(side) for side in zip(*pairs, strict=True))
    return cat(rows, dim=0), cat(numbers, dim=0)


def _flat(builder: Builder, found: Rows, table: TensorType) -> tuple[Value, Value]:
    rows, numbers = builder.value(found.rows), builder.value(found.numbers)
    types = [call.args[0].ty for call in found.later if call.callee is reshape]
    inner = types[-1] if types else table
    assert isinstance(inner, TensorType)
    if found.from_end:
        numbers = from_start(numbers, inner.shape[0])
    numbers = numbers.cast(int64)
    if found.split:
        rows, numbers = _split(rows, numbers, inner.shape[1:])
    rows, numbers = flat_rows(rows, numbers, inner.rank - 1)
    for call in reversed(found.later):
        assert isinstance(call.callee, Op)
        if call.callee is reshape:
            assert isinstance(call.ty, TensorType)
            rows, numbers = _unflattened(rows, numbers, call.ty.shape[1:])
        else:
            args = (rows, *map(builder.value, call.args[1:]))
            rows = builder.call(call.callee, args, call.attrs)
    return rows, numbers


def _split(rows: Value, numbers: Value, row: tuple[Dim, ...]) -> tuple[Value, Value]:
    """Return a row for each element of rows, given the number of each."""
    count, width = numbers.shape[0], product(row)
    places = rows.builder.call(arange, (), {"end": width}).expand((count, width))
    elements = rows.reshape(count * width), places.reshape(count * width)
    return _alone(*elements, row), numbers.reshape(count * width)


def _unflattened(elements: Value, numbers: Value, row: tuple[Dim, ...]) -> tuple[Value, Value]:
    """Return elements of a flattened table, with their numbers, as rows of the table."""
    if not row:
        return elements, numbers
    width = elements.builder.size(product(row))
    return _alone(elements, mod(numbers, width), row), floor_divide(numbers, width)


def _alone(elements: Value, places: Value, row: tuple[Dim, ...]) -> Value:
    """Return a row for each element, zero but for the element at its place in the row."""
    width = product(row)
    is_here = equal(places.unsqueeze(1), elements.builder.call(arange, (), {"end": width}))
    elements = elements.unsqueeze(1)
    return where(is_here, elements, 0.0).reshape(elements.shape[0], *row)
