"""Batching rules of views, and of operators that work along dims that attributes name.

The dims of a row are counted behind that of the rows: `f(x, dim=d)[i] = f(x[i], dim=d)` becomes
`f(x, dim=d + 1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...ir.dims import ONE, product
from ...ir.op import Op
from ...ir.types import TupleType
from ...operators.builder import Value
from ...operators.composite.layouts import to_layout
from ...operators.composite.softmax import log_softmax, softmax
from ...operators.matrices.products import diagonal
from ...operators.primitive.join import cat, pad, pad_fold, stack
from ...operators.primitive.parts import narrow
from ...operators.primitive.reduce import sum_to
from ...operators.primitive.scan import cumprod, cumsum, recurrence
from ...operators.primitive.sort import argsort, sort, topk
from ...operators.primitive.stretch import stretch, unstretch
from ...operators.primitive.view import (
    expand,
    flatten,
    flip,
    permute,
    permute_copy,
    reshape,
    roll,
    squeeze,
    swapaxes,
    transpose,
    unsqueeze,
)
from .rows import Mask, RowsCall, Rule, reshaped, rows_type


def reduction(rows: RowsCall) -> Value | None:
    """Return a reduction, or anything else with a `dim` that may be None for all of them."""
    dim, rank = rows.attrs["dim"], rows.rank()
    if len(rows.operands) > 1:
        return None
    if rank and isinstance(dim, int):
        return rows.emit(rows.operands, dim=dim % rank + 1)
    if rank and dim is not None:
        return rows.emit(rows.operands, dim=tuple(d % rank + 1 for d in dim))
    whole = rows.operands[0]
    flat = whole.reshape(rows.count, product(whole.shape[1:]))
    is_pair = isinstance(rows.ty, TupleType)
    found = rows.emit((flat,), dim=(1,) if isinstance(dim, tuple) else 1)
    if isinstance(found.ty, TupleType) and not is_pair:
        found = found[0]  # `max` along a dim gives positions, too
    return reshaped(found, rows_type(rows.ty, True, rows.count))


def along(*names: str) -> Rule:
    """Return the rule of an operator whose attributes name dims of all its operands alike."""

    def rule(rows: RowsCall) -> Value:
        operands, rank = [rows.whole(i) for i in range(len(rows.operands))], rows.rank()
        if rank == 0:
            # One element is a row of one.
            lines = [v.reshape(rows.count, ONE) for v in operands]
            found = rows.emit(lines, **{n: _behind(rows.attrs[n], 1) for n in names})
            return reshaped(found, rows_type(rows.ty, True, rows.count))
        return rows.emit(operands, **{n: _behind(rows.attrs[n], rank) for n in names})

    return rule


def _behind(dims: Any, rank: int) -> Any:
    if isinstance(dims, tuple):
        return tuple(d % rank + 1 for d in dims)
    return dims % rank + 1


def view_only(rows: RowsCall) -> Value:
    """Return the same elements in another shape: that of the result, behind the rows."""
    return rows.operands[0].reshape(rows.count, *rows.shape)


def _reshape(rows: RowsCall) -> Value:
    return rows.emit(rows.operands, shape=(rows.count, *rows.shape))


def _flatten(rows: RowsCall) -> Value | None:
    return _FLATTENED(rows) if rows.rank() else view_only(rows)


def _expand(rows: RowsCall) -> Value:
    return rows.emit([rows.padded(0, len(rows.shape))], size=(rows.count, *rows.shape))


def _sum_to(rows: RowsCall) -> Value:
    size = rows.attrs["size"]
    missing = rows.rank() - len(size)
    whole = rows.emit(rows.operands, size=(rows.count, *(ONE,) * missing, *size))
    return whole.reshape(rows.count, *size)


def _sized(rows: RowsCall) -> Value:
    """Return the value of an operator whose attribute `size` is the shape of its result."""
    return rows.emit(rows.operands, size=(rows.count, *rows.attrs["size"]))


def _permute(rows: RowsCall) -> Value:
    return rows.emit(rows.operands, dims=(0, *_behind(rows.attrs["dims"], max(rows.rank(), 1))))


def _unsqueeze(rows: RowsCall) -> Value:
    return rows.emit(rows.operands, dim=rows.attrs["dim"] % (rows.rank() + 1) + 1)


def _roll(rows: RowsCall) -> Value:
    (x,) = rows.operands
    if rows.attrs["dims"] is not None and rows.rank():
        return rows.emit((x,), dims=_behind(rows.attrs["dims"], rows.rank()))
    flat = x.reshape(rows.count, product(x.shape[1:]))
    return rows.emit((flat,), dims=(1,) * len(rows.attrs["shifts"])).reshape(*x.shape)


def _edges(rows: RowsCall) -> Value:
    """Return the value of an operator whose attribute counts dims from the last."""
    return rows.emit(rows.operands)


def parts(rows: RowsCall) -> list[tuple[Value, bool]]:
    """Return the tensors that one tuple holds, each with whether it is a row."""
    (pack,), (mask,) = rows.operands, rows.is_row
    assert isinstance(pack.ty, TupleType)
    masks: tuple[Mask, ...] = mask if isinstance(mask, tuple) else (mask,) * len(pack.ty.fields)
    return [(pack[i], bool(m)) for i, m in enumerate(masks)]


def _joined(extra: int) -> Callable[[RowsCall], Value]:
    """Return the rule of an operator that joins tensors along a dim of the result, which has
    `extra` dims more than they."""

    def rule(rows: RowsCall) -> Value:
        whole = [v if m else rows.repeated(v) for v, m in parts(rows)]
        rank = whole[0].rank - 1 + extra
        return rows.emit((rows.builder.tuple(whole),), dim=rows.attrs["dim"] % rank + 1)

    return rule


_FLATTENED: Final = along("start_dim", "end_dim")

RULES: Final[Mapping[Op, Rule]] = {
    softmax: along("dim"),
    log_softmax: along("dim"),
    cumsum: along("dim"),
    cumprod: along("dim"),
    recurrence: along("dim"),
    sort: along("dim"),
    argsort: along("dim"),
    topk: along("dim"),
    flip: along("dims"),
    narrow: along("dim"),
    transpose: along("dim0", "dim1"),
    swapaxes: along("axis0", "axis1"),
    diagonal: along("dim1", "dim2"),
    flatten: _flatten,
    reshape: _reshape,
    squeeze: view_only,
    expand: _expand,
    stretch: _sized,
    unstretch: _sized,
    sum_to: _sum_to,
    permute: _permute,
    permute_copy: _permute,
    to_layout: lambda rows: rows.emit(rows.operands),
    unsqueeze: _unsqueeze,
    roll: _roll,
    pad: _edges,
    pad_fold: _edges,
    cat: _joined(0),
    stack: _joined(1),
}
