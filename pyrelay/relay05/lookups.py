"""Relay's operators that look elements up by their places, and the places of classes."""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Expr
from ..ir.types import DType
from ..operators.primitive import arithmetic, compare, create, gathering, index, view
from . import attributes
from .attributes import Attribute, only, optional, refuse, word
from .imported import Emit, Imported, always, counts_from_the_end


def _take(e: Emit, x: Expr, indices: Expr, *, batch_dims: int, axis: Any, mode: str) -> Expr:
    del batch_dims  # which is 0
    if axis is None:
        x, place = e.call(view.reshape, x, shape=(-1,)), 0
    else:
        place = axis if axis >= 0 else axis + e.rank(x)
    x = e.named(x)
    spec = (*[("slice", None, None, None)] * place, ("int", 0))
    inside = _bounded(e, indices, e.size(x, place), mode)
    return e.call(index.index, x, e.tuple(inside), spec=spec)


def _bounded(e: Emit, indices: Expr, size: Expr, mode: str) -> Expr:
    """Build positions below a size: `clip` takes the nearest, `wrap` counts on from the other end,
    `fast` leaves them to the program."""
    match mode:
        case "clip":
            last = e.call(arithmetic.subtract, size, e.number(1))
            above = e.call(arithmetic.maximum, indices, e.number(0))
            return e.call(arithmetic.minimum, above, last)
        case "wrap":
            return e.call(arithmetic.mod, indices, size)
        case _:
            return indices


def _gather(e: Emit, x: Expr, indices: Expr, *, axis: int) -> Expr:
    return e.call(gathering.gather, x, indices, dim=axis)


def _gather_nd(e: Emit, x: Expr, indices: Expr, *, batch_dims: int, index_rank: int | None) -> Expr:
    """Build the elements, or rows, at the places that columns of indices name."""
    del batch_dims  # which is 0
    shape = e.shape(indices)
    found = shape[0].constant if shape else None
    count = found if index_rank is None else index_rank
    if count is None:
        refuse("needs indices whose first dim is a number, or an `index_rank`")
    if found is not None and found != count:
        refuse("has another `index_rank` than its indices have rows")
    indices = e.named(indices)
    rows = [e.call(index.index, indices, e.tuple(e.number(n)), spec=_ROW) for n in range(count)]
    spec = tuple(("int", place) for place in range(count))
    return e.call(index.index, x, e.tuple(*rows), spec=spec)


_ROW: Final = (("int", 0),)


def _one_hot(
    e: Emit, indices: Expr, on: Expr, off: Expr, *, depth: int, axis: int, dtype: DType | None
) -> Expr:
    """Build `on` at the place of each index, `off` elsewhere; one out of range has no place."""
    rank, kept = e.rank(indices), e.dtype(indices)
    classes = e.call(create.arange, start=0, end=depth, dtype=kept)
    is_hot = e.call(compare.equal, e.call(view.unsqueeze, indices, dim=-1), classes)
    place = axis if axis >= 0 else axis + rank + 1
    if not 0 <= place <= rank:
        refuse(f"has no axis {axis}: the result has {rank + 1} dims")
    if place < rank:
        order = [*range(rank)]
        order.insert(place, rank)
        is_hot = e.call(view.permute, is_hot, dims=tuple(order))
    on, off = (
        value if dtype is None else e.call(compare.cast, value, dtype=dtype) for value in (on, off)
    )
    return e.call(compare.where, is_hot, on, off)


def _sparse_to_dense(
    e: Emit, indices: Expr, values: Expr, default: Expr | None, *, output_shape: Any
) -> Expr:
    """Build a tensor of the values at the places that rows of indices name, and of the default
    elsewhere."""
    rank, shape = len(output_shape), e.shape(indices)
    columns = shape[1].constant if len(shape) > 1 else 1
    if columns != rank:
        refuse(f"needs indices of {rank} columns, as many as `output_shape` has sizes")
    indices = e.named(e.call(view.reshape, indices, shape=(-1, rank)))
    blank = e.number(0) if default is None else default
    kept = e.dtype(values)
    whole = e.call(view.expand, e.call(compare.cast, blank, dtype=kept), size=output_shape)
    at = [
        e.call(index.index, indices, e.tuple(e.number(n)), spec=(*_ALL, ("int", 0)))
        for n in range(rank)
    ]
    spec = tuple(("int", place) for place in range(rank))
    return e.call(index.set_at, whole, e.tuple(*at), values, spec=spec)


_ALL: Final = (("slice", None, None, None),)

LOOKUPS: Final = (
    Imported(
        name="take",
        operands=("data", "indices"),
        attributes={
            "batch_dims": only(0),
            "axis": optional(attributes.integer),
            "mode": Attribute(word("clip", "wrap", "fast"), "clip"),
        },
        build=_take,
        needs_types=counts_from_the_end,
    ),
    Imported(
        name="gather",
        operands=("data", "indices"),
        attributes={"axis": Attribute(attributes.integer)},
        build=_gather,
    ),
    Imported(
        name="gather_nd",
        operands=("data", "indices"),
        attributes={"batch_dims": only(0), "index_rank": optional(attributes.integer)},
        build=_gather_nd,
        needs_types=always,
    ),
    Imported(
        name="sparse_to_dense",
        operands=("sparse_indices", "sparse_values", "default_value"),
        optional=1,
        attributes={"output_shape": Attribute(attributes.integers)},
        build=_sparse_to_dense,
        needs_types=always,
    ),
    Imported(
        name="one_hot",
        operands=("indices", "on_value", "off_value"),
        attributes={
            "depth": Attribute(attributes.integer),
            "axis": Attribute(attributes.integer, -1),
            "dtype": optional(attributes.dtype),
        },
        build=_one_hot,
        needs_types=always,
    ),
)
