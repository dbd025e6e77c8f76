"""Operators on the host whose operands are batched: sizes, checks, and lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ...ir.dims import product
from ...ir.op import Op
from ...ir.types import TensorType
from ...operators.builder import Value
from ...operators.host.failing import check, no_element
from ...operators.host.sizes import dim_size, numel, rank, shape
from ...operators.primitive.index import index
from ...operators.primitive.reduce import all_
from ...operators.primitive.rows import stack_rows, unstack
from ..batching.rows import RowsCall

HostRule: TypeAlias = Callable[[RowsCall], tuple[Value, bool]]
"""Return a value, and whether it is batched."""


def _shape(rows: RowsCall) -> tuple[Value, bool]:
    return rows.builder.tuple(list(map(rows.builder.size, rows.row_shape()))), False


def _dim_size(rows: RowsCall) -> tuple[Value, bool]:
    return rows.builder.size(rows.row_shape()[rows.attrs["dim"]]), False


def _numel(rows: RowsCall) -> tuple[Value, bool]:
    return rows.builder.size(product(rows.row_shape())), False


def _rank(rows: RowsCall) -> tuple[Value, bool]:
    return rows.builder.size(rows.rank()), False


def _check(rows: RowsCall) -> tuple[Value, bool]:
    """Check that a condition holds for every element."""
    return rows.emit((all_(rows.operands[0]), *rows.operands[1:])), False


def _first(value: Value) -> Value:
    zero = value.builder.size(0)
    return index(value, value.builder.tuple((zero,)), spec=(("int", 0),))


def _no_element(rows: RowsCall) -> tuple[Value, bool]:
    """Stop as the first element of the batch does."""
    operands = [_first(v) if rows.has(i) else v for i, v in enumerate(rows.operands)]
    return rows.emit_as(rows.ty, operands), False


def _stack_rows(rows: RowsCall) -> tuple[Value, bool]:
    """Stack the tensors of a list behind the dim of the batch."""
    assert isinstance(rows.ty, TensorType)
    place = rows.attrs["dim"] % len(rows.shape) + 1
    xs, like = rows.operands
    like = rows.whole(1) if isinstance(like.ty, TensorType) else like
    ty = TensorType((rows.count, *rows.shape), rows.ty.dtype)
    return rows.emit_as(ty, (xs, like), dim=place), True


def _unstack(rows: RowsCall) -> tuple[Value, bool]:
    return rows.emit(rows.operands, dim=rows.attrs["dim"] % rows.rank() + 1), True


HOST_RULES: Final[Mapping[Op, HostRule]] = {
    shape: _shape,
    dim_size: _dim_size,
    numel: _numel,
    rank: _rank,
    check: _check,
    no_element: _no_element,
    stack_rows: _stack_rows,
    unstack: _unstack,
}
"""The batching rules of operators on the host; the others take no batched operands."""
