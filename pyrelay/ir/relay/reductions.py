"""Relay's reductions, sorting and searching."""

from __future__ import annotations

from typing import Any, Final

from ..expr import Expr
from ..op import Op
from ..ops import arithmetic, compare, extrema, measure, reduce, scan, softmax, sort
from .imported import REQUIRED, Emit, Imported, dtype_of, integer, integers, only, refuse

_AXES: Final = {"axis": None, "keepdims": False, "exclude": False}


def _axes(axis: Any, exclude: Any) -> tuple[int, ...] | None:
    if exclude:
        refuse("is supported with `exclude=False` only", "name the axes to reduce")
    return None if axis is None or axis == () else integers(axis, "axis")


def _reduction(name: str, op: Op) -> Imported:
    def build(e: Emit, x: Expr, *, axis: Any, keepdims: Any, exclude: Any) -> Expr:
        return e.call(op, x, dim=_axes(axis, exclude), keepdim=bool(keepdims))

    return Imported(name=name, operands=("data",), attributes=_AXES, build=build)


def _one_axis(axis: Any, exclude: Any) -> int | None:
    dims = _axes(axis, exclude)
    return None if dims is None else integer(dims, "axis")


def _product(e: Emit, x: Expr, *, axis: Any, keepdims: Any, exclude: Any) -> Expr:
    return e.call(reduce.prod, x, dim=_one_axis(axis, exclude), keepdim=bool(keepdims))


def _position(name: str, op: Op) -> Imported:
    def build(
        e: Emit, x: Expr, *, axis: Any, keepdims: Any, exclude: Any, select_last_index: Any
    ) -> Expr:
        only(bool(select_last_index), allowed=False, name="select_last_index")
        found = e.call(op, x, dim=_one_axis(axis, exclude), keepdim=bool(keepdims))
        return e.call(compare.cast, found, dtype=dtype_of("int32"))

    attributes = {**_AXES, "select_last_index": False}
    return Imported(name=name, operands=("data",), attributes=attributes, build=build)


def _variance(
    e: Emit, x: Expr, mean: Expr, *, axis: Any, keepdims: Any, exclude: Any, unbiased: Any
) -> Expr:
    dims = _axes(axis, exclude)
    if unbiased:
        return e.call(measure.var, x, dim=dims, keepdim=bool(keepdims))
    off = e.named(e.call(arithmetic.subtract, x, mean))
    square = e.call(arithmetic.multiply, off, off)
    return e.call(reduce.mean, square, dim=dims, keepdim=bool(keepdims))


def _scan(name: str, op: Op) -> Imported:
    def build(e: Emit, x: Expr, *, axis: Any, dtype: Any, exclusive: Any) -> Expr:
        only(bool(exclusive), allowed=False, name="exclusive")
        if axis is None:
            refuse("needs an axis")
        found = e.call(op, x, dim=integer(axis, "axis"))
        wanted = dtype_of(dtype)
        return found if wanted is None else e.call(compare.cast, found, dtype=wanted)

    attributes = {"axis": REQUIRED, "dtype": "", "exclusive": False}
    return Imported(name=name, operands=("data",), attributes=attributes, build=build)


def _softmax(name: str, op: Op) -> Imported:
    return Imported(
        name=name,
        operands=("data",),
        attributes={"axis": -1},
        build=lambda e, x, *, axis: e.call(op, x, dim=integer(axis, "axis")),
    )


def _argsort(e: Emit, x: Expr, *, axis: Any, is_ascend: Any, dtype: Any) -> Expr:
    found = e.call(sort.argsort, x, dim=integer(axis, "axis"), descending=not is_ascend)
    return e.call(compare.cast, found, dtype=dtype_of(dtype))


def _sort(e: Emit, x: Expr, *, axis: Any, is_ascend: Any) -> Expr:
    found = e.call(sort.sort, x, dim=integer(axis, "axis"), descending=not is_ascend)
    return e.get(found, 0)


def _topk(
    e: Emit, x: Expr, *, k: Any, axis: Any, ret_type: Any, is_ascend: Any, dtype: Any
) -> Expr:
    found = e.named(
        e.call(sort.topk, x, k=integer(k, "k"), dim=integer(axis, "axis"), largest=not is_ascend)
    )
    positions = e.call(compare.cast, e.get(found, 1), dtype=dtype_of(dtype))
    match ret_type:
        case "both":
            return e.tuple(e.get(found, 0), positions)
        case "values":
            return e.get(found, 0)
        case "indices":
            return positions
        case _:
            return refuse(f'has no `ret_type="{ret_type}"`')


REDUCTIONS: Final = (
    _reduction("sum", reduce.sum_),
    _reduction("mean", reduce.mean),
    _reduction("max", extrema.amax),
    _reduction("min", extrema.amin),
    _reduction("all", reduce.all_),
    _reduction("any", reduce.any_),
    _reduction("logsumexp", measure.logsumexp),
    Imported(name="prod", operands=("data",), attributes=_AXES, build=_product),
    _position("argmax", extrema.argmax),
    _position("argmin", extrema.argmin),
    Imported(
        name="variance",
        operands=("data", "mean"),
        attributes={**_AXES, "unbiased": False},
        build=_variance,
    ),
    _scan("cumsum", scan.cumsum),
    _scan("cumprod", scan.cumprod),
    _softmax("nn.softmax", softmax.softmax),
    _softmax("nn.log_softmax", softmax.log_softmax),
    Imported(
        name="argsort",
        operands=("data",),
        attributes={"axis": -1, "is_ascend": True, "dtype": "int32"},
        build=_argsort,
    ),
    Imported(
        name="sort", operands=("data",), attributes={"axis": -1, "is_ascend": True}, build=_sort
    ),
    Imported(
        name="topk",
        operands=("data",),
        attributes={
            "k": 1,
            "axis": -1,
            "ret_type": "both",
            "is_ascend": False,
            "dtype": "int32",
        },
        build=_topk,
    ),
)
