"""Relay's reductions, sorting and searching."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce as fold
from typing import Any, Final

from ..ir.expr import Expr
from ..ir.op import Op
from ..ir.types import DType, DTypeKind, int32
from ..operators.composite import elementwise, measure
from ..operators.composite import softmax as softmaxes
from ..operators.primitive import arithmetic, compare, extrema, join, reduce, scan, sort, view
from ..operators.primitive.sort import searchsorted
from . import attributes
from .attributes import Attribute, optional, refuse, word
from .imported import Emit, Imported, always

_AXES: Final = {
    "axis": optional(attributes.integers),
    "keepdims": Attribute(attributes.flag, default=False),
    "exclude": Attribute(attributes.flag, default=False),
}
_POSITIONS: Final = Attribute(attributes.dtype, int32)


def _excludes(attrs: Mapping[str, Any]) -> bool:
    return attrs["exclude"]


def _axes(e: Emit, x: Expr, axis: tuple[int, ...] | None, exclude: bool) -> tuple[int, ...] | None:
    """Return the dims to reduce, None for all; `exclude` names those to keep."""
    if not exclude:
        return axis or None
    rank = e.rank(x)
    kept = {d % rank for d in axis or () if -rank <= d < rank}
    return tuple(d for d in range(rank) if d not in kept)


def _reduction(name: str, op: Op) -> Imported:
    def build(e: Emit, x: Expr, *, axis: Any, keepdims: bool, exclude: bool) -> Expr:
        dims = _axes(e, x, axis, exclude)
        return x if dims == () else e.call(op, x, dim=dims, keepdim=keepdims)

    return Imported(
        name=name, operands=("data",), attributes=_AXES, build=build, needs_types=_excludes
    )


def _counted_dtype(e: Emit, x: Expr) -> DType | None:
    """Return the dtype that sums of integers keep; None for floats, whose sums are of theirs."""
    dtype = e.dtype(x)
    if dtype.kind is DTypeKind.BOOL:
        refuse("takes numbers, not bools", 'cast them first: `cast(%x, dtype="int32")`')
    return dtype if dtype.kind is DTypeKind.INT else None


def _sum(e: Emit, x: Expr, *, axis: Any, keepdims: bool, exclude: bool) -> Expr:
    dims, dtype = _axes(e, x, axis, exclude), _counted_dtype(e, x)
    return x if dims == () else e.call(reduce.sum_, x, dim=dims, keepdim=keepdims, dtype=dtype)


def _mean(e: Emit, x: Expr, *, axis: Any, keepdims: bool, exclude: bool) -> Expr:
    """Build the mean; of integers it is the quotient of their sum, towards zero."""
    dims, dtype = _axes(e, x, axis, exclude), _counted_dtype(e, x)
    if dims == ():
        return x
    if dtype is None:
        return e.call(reduce.mean, x, dim=dims, keepdim=keepdims)
    total = e.call(reduce.sum_, x, dim=dims, keepdim=keepdims, dtype=dtype)
    return e.call(elementwise.quotient, total, _count(e, x, dims))


def _count(e: Emit, x: Expr, dims: tuple[int, ...] | None) -> Expr:
    """Build the number of elements that are reduced to one."""
    sizes = [e.size(x, d) for d in (range(e.rank(x)) if dims is None else dims)]
    return fold(lambda a, b: e.call(arithmetic.multiply, a, b), sizes, e.number(1))


def _product(e: Emit, x: Expr, *, axis: Any, keepdims: bool, exclude: bool) -> Expr:
    dims, dtype = _axes(e, x, axis, exclude), _counted_dtype(e, x)
    if dims is None and not keepdims:
        return e.call(reduce.prod, x, dtype=dtype)
    rank = e.rank(x)
    for d in sorted((d % rank for d in (range(rank) if dims is None else dims)), reverse=True):
        x = e.call(reduce.prod, x, dim=d, keepdim=keepdims, dtype=dtype)
    return x


def _position(name: str, op: Op) -> Imported:
    def build(e: Emit, x: Expr, **attrs: Any) -> Expr:
        dims = _axes(e, x, attrs["axis"], attrs["exclude"])
        if dims is not None and len(dims) != 1:
            refuse("is supported with one `axis`, or with all")
        dim = None if dims is None else dims[0]
        found = e.call(op, x, dim=dim, keepdim=attrs["keepdims"])
        return e.call(compare.cast, found, dtype=int32)

    found = {**_AXES, "select_last_index": attributes.only(allowed=False)}
    return Imported(
        name=name, operands=("data",), attributes=found, build=build, needs_types=_excludes
    )


def _variance(
    e: Emit, x: Expr, mean: Expr, *, axis: Any, keepdims: bool, exclude: bool, unbiased: bool
) -> Expr:
    if e.dtype(x).kind is not DTypeKind.FLOAT:
        refuse("takes floats", 'cast the data first: `cast(%x, dtype="float32")`')
    dims = _axes(e, x, axis, exclude)
    off = e.named(e.call(arithmetic.subtract, x, mean))
    square = e.call(arithmetic.multiply, off, off)
    if dims == ():
        return square
    if not unbiased:
        return e.call(reduce.mean, square, dim=dims, keepdim=keepdims)
    total = e.call(reduce.sum_, square, dim=dims, keepdim=keepdims)
    others = e.call(arithmetic.subtract, _count(e, x, dims), e.number(1))
    return e.call(elementwise.quotient, total, others)


def _scan(name: str, op: Op, neutral: int) -> Imported:
    def build(e: Emit, x: Expr, *, axis: Any, dtype: Any, exclusive: bool) -> Expr:
        kept = dtype or _counted_dtype(e, x) or e.dtype(x)
        rank, dim = e.rank(x), axis
        if axis is None:
            x, dim, rank = e.call(view.reshape, x, shape=(-1,)), 0, 1
        found = e.call(op, x, dim=dim, dtype=kept)
        if not exclusive:
            return found
        shifted = (*(0,) * 2 * (rank - 1 - dim % rank), 1, -1)
        return e.call(join.pad, found, pad=shifted, mode="constant", value=neutral)

    found = {
        "axis": optional(attributes.integer),
        "dtype": optional(attributes.dtype),
        "exclusive": Attribute(attributes.flag, default=False),
    }
    return Imported(
        name=name, operands=("data",), attributes=found, build=build, needs_types=always
    )


def _softmax(name: str, op: Op) -> Imported:
    return Imported(
        name=name,
        operands=("data",),
        attributes={"axis": Attribute(attributes.integer, -1)},
        build=lambda e, x, *, axis: e.call(op, x, dim=axis),
    )


def _argsort(e: Emit, x: Expr, *, axis: int, is_ascend: bool, dtype: DType) -> Expr:
    found = e.call(sort.argsort, x, dim=axis, descending=not is_ascend)
    return e.call(compare.cast, found, dtype=dtype)


def _searchsorted(e: Emit, rows: Expr, values: Expr, *, right: bool, dtype: DType) -> Expr:
    return e.call(compare.cast, e.call(searchsorted, rows, values, right=right), dtype=dtype)


def _sort(e: Emit, x: Expr, *, axis: int, is_ascend: bool) -> Expr:
    return e.get(e.call(sort.sort, x, dim=axis, descending=not is_ascend), 0)


def _topk(
    e: Emit, x: Expr, *, k: Any, axis: int, ret_type: str, is_ascend: bool, dtype: DType
) -> Expr:
    """Build the best elements along an axis; all of them in order where `k` is below 1."""
    x = e.named(x)
    count = e.size(x, axis) if k is None or (isinstance(k, int) and k < 1) else k
    found = e.named(e.call(sort.topk, x, k=count, dim=axis, largest=not is_ascend))
    positions = e.call(compare.cast, e.get(found, 1), dtype=dtype)
    match ret_type:
        case "both":
            return e.tuple(e.get(found, 0), positions)
        case "values":
            return e.get(found, 0)
        case _:
            return positions


REDUCTIONS: Final = (
    Imported(name="sum", operands=("data",), attributes=_AXES, build=_sum, needs_types=always),
    Imported(name="mean", operands=("data",), attributes=_AXES, build=_mean, needs_types=always),
    _reduction("max", extrema.amax),
    _reduction("min", extrema.amin),
    _reduction("all", reduce.all_),
    _reduction("any", reduce.any_),
    _reduction("logsumexp", measure.logsumexp),
    Imported(name="prod", operands=("data",), attributes=_AXES, build=_product, needs_types=always),
    _position("argmax", extrema.argmax),
    _position("argmin", extrema.argmin),
    Imported(
        name="variance",
        operands=("data", "mean"),
        attributes={**_AXES, "unbiased": Attribute(attributes.flag, default=False)},
        build=_variance,
        needs_types=always,
    ),
    _scan("cumsum", scan.cumsum, 0),
    _scan("cumprod", scan.cumprod, 1),
    _softmax("nn.softmax", softmaxes.softmax),
    _softmax("nn.log_softmax", softmaxes.log_softmax),
    Imported(
        name="argsort",
        operands=("data",),
        attributes={
            "axis": Attribute(attributes.integer, -1),
            "is_ascend": Attribute(attributes.flag, default=True),
            "dtype": _POSITIONS,
        },
        build=_argsort,
    ),
    Imported(
        name="searchsorted",
        operands=("sorted_sequence", "values"),
        attributes={"right": Attribute(attributes.flag, default=False), "dtype": _POSITIONS},
        build=_searchsorted,
    ),
    Imported(
        name="sort",
        operands=("data",),
        attributes={
            "axis": Attribute(attributes.integer, -1),
            "is_ascend": Attribute(attributes.flag, default=True),
        },
        build=_sort,
    ),
    Imported(
        name="topk",
        operands=("data",),
        attributes={
            "k": optional(attributes.integer, 1),
            "axis": Attribute(attributes.integer, -1),
            "ret_type": Attribute(word("both", "values", "indices"), "both"),
            "is_ascend": Attribute(attributes.flag, default=False),
            "dtype": _POSITIONS,
        },
        build=_topk,
    ),
)
