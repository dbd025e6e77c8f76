"""Relay's operators on shapes: views, joins, slices, lookups, and tensors made of nothing."""

from __future__ import annotations

import itertools
from typing import Any, Final

from ..expr import Constant, Expr, Tuple
from ..ops import arithmetic, compare, create, einsum, gathering, index, join, sizes, view
from .imported import (
    REQUIRED,
    Emit,
    Imported,
    dtype_of,
    integer,
    integers,
    only,
    refuse,
)


def _reshape(e: Emit, x: Expr, *, newshape: Any, allowzero: Any) -> Expr:
    """Relay's codes: 0 keeps a dim, -1 is what is left, -3 joins two dims, -4 splits one."""
    x = e.named(x)
    shape: list[Any] = []
    source = 0
    codes = list(integers(newshape, "newshape"))
    while codes:
        code = codes.pop(0)
        match code:
            case 0 if not allowzero:
                shape.append(e.call(sizes.dim_size, x, dim=source))
                source += 1
            case -3:
                pair = [e.call(sizes.dim_size, x, dim=source + i) for i in range(2)]
                shape.append(e.call(arithmetic.multiply, *pair))
                source += 2
            case -4 if len(codes) > 1:
                shape += _split_dim(e, x, source, codes.pop(0), codes.pop(0))
                source += 1
            case _ if code < -1:
                refuse(f"has the code {code} in `newshape`, which is not supported")
            case _:
                shape.append(code)
                source += 1
    return e.call(view.reshape, x, shape=tuple(shape))


def _split_dim(e: Emit, x: Expr, source: int, first: int, second: int) -> list[Any]:
    whole = e.call(sizes.dim_size, x, dim=source)
    if first == -1:
        return [e.call(arithmetic.floor_divide, whole, e.number(second)), second]
    if second == -1:
        return [first, e.call(arithmetic.floor_divide, whole, e.number(first))]
    return [first, second]


def _transpose(e: Emit, x: Expr, *, axes: Any) -> Expr:
    if axes in (None, ()):
        refuse("needs its `axes` written out", "a transpose of rank 2 is `axes=[1, 0]`")
    return e.call(view.permute, x, dims=integers(axes, "axes"))


def _expand_dims(e: Emit, x: Expr, *, axis: Any, num_newaxis: Any) -> Expr:
    place = integer(axis, "axis")
    for _ in range(integer(num_newaxis, "num_newaxis")):
        x = e.call(view.unsqueeze, x, dim=place)
    return x


def _squeeze(e: Emit, x: Expr, *, axis: Any) -> Expr:
    return e.call(view.squeeze, x, dim=None if axis is None else integers(axis, "axis"))


def _split(e: Emit, x: Expr, *, indices_or_sections: Any, axis: Any) -> Expr:
    dim = integer(axis, "axis")
    x = e.named(x)
    size = e.call(sizes.dim_size, x, dim=dim)
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        length = e.call(arithmetic.floor_divide, size, e.number(count))
        return e.call(join.split, x, split_size_or_sections=(length,) * count, dim=dim)
    cuts = (0, *integers(indices_or_sections, "indices_or_sections"))
    lengths: list[Any] = [b - a for a, b in itertools.pairwise(cuts)]
    lengths.append(e.call(arithmetic.subtract, size, e.number(cuts[-1])))
    return e.call(join.split, x, split_size_or_sections=tuple(lengths), dim=dim)


def _strided_slice(
    e: Emit, x: Expr, *, begin: Any, end: Any, strides: Any, slice_mode: Any, axes: Any
) -> Expr:
    starts, stops = integers(begin, "begin"), integers(end, "end")
    steps = integers(strides or (1,), "strides")
    steps = steps * len(starts) if len(steps) == 1 else steps
    places = range(len(starts)) if axes is None else integers(axes, "axes")
    if slice_mode not in ("end", "size") or any(p < 0 for p in places):
        refuse("is supported with axes counted from 0 and the modes `end` and `size`")
    spec: list[tuple[Any, ...]] = [("slice", None, None, None)] * (max(places, default=-1) + 1)
    for place, start, stop, step in zip(places, starts, stops, steps, strict=True):
        if step <= 0:
            refuse("is supported with positive strides only")
        if slice_mode == "size":
            stop = None if stop == -1 else start + stop
        spec[place] = ("slice", start, None if stop == 2**31 - 1 else stop, step)
    return e.call(index.index, x, Tuple((), span=e.span), spec=tuple(spec))


def _take(e: Emit, x: Expr, indices: Expr, *, batch_dims: Any, axis: Any, mode: Any) -> Expr:
    only(batch_dims, 0, "batch_dims")
    if mode not in ("clip", "fast", "wrap"):
        refuse(f'has no `mode="{mode}"`')
    if axis is None:
        return e.call(gathering.take, x, indices)
    place = integer(axis, "axis")
    if place < 0:
        refuse("is supported with an axis counted from 0")
    spec = (*[("slice", None, None, None)] * place, ("int", 0))
    return e.call(index.index, x, e.tuple(indices), spec=spec)


def _gather(e: Emit, x: Expr, indices: Expr, *, axis: Any) -> Expr:
    return e.call(gathering.gather, x, indices, dim=integer(axis, "axis"))


def _one_hot(
    e: Emit, indices: Expr, on: Expr, off: Expr, *, depth: Any, axis: Any, dtype: Any
) -> Expr:
    only(integer(axis, "axis"), -1, "axis")
    hot = e.call(gathering.one_hot, indices, num_classes=integer(depth, "depth"))
    is_hot = e.call(compare.equal, hot, e.number(1))
    found = dtype_of(dtype)
    on, off = (
        value if found is None else e.call(compare.cast, value, dtype=found) for value in (on, off)
    )
    return e.call(compare.where, is_hot, on, off)


def _full(e: Emit, value: Expr, *, shape: Any, dtype: Any) -> Expr:
    found = dtype_of(dtype)
    if found is not None:
        value = e.call(compare.cast, value, dtype=found)
    return e.call(view.expand, value, size=integers(shape, "shape"))


def _filled(name: str, op: Any) -> Imported:
    def build(e: Emit, *, shape: Any, dtype: Any) -> Expr:
        return e.call(op, size=integers(shape, "shape"), dtype=dtype_of(dtype))

    attributes = {"shape": REQUIRED, "dtype": REQUIRED}
    return Imported(name=name, operands=(), attributes=attributes, build=build)


def _arange(e: Emit, first: Expr, last: Expr, by: Expr, **attrs: Any) -> Expr:
    bounds: list[Any] = []
    for bound in (first, last, by):
        if not isinstance(bound, Constant) or not isinstance(bound.value, int | float):
            refuse("is supported with literal bounds only")
        bounds.append(bound.value)
    found = dtype_of(attrs["dtype"])
    return e.call(create.arange, start=bounds[0], end=bounds[1], step=bounds[2], dtype=found)


def _repeat(e: Emit, x: Expr, *, repeats: Any, axis: Any) -> Expr:
    place, count = integer(axis, "axis"), integer(repeats, "repeats")
    if place < 0:
        refuse("is supported with an axis counted from 0")
    x = e.named(x)
    spread = e.call(join.stack, e.tuple(*(x,) * count), dim=place + 1)
    return e.call(view.flatten, spread, start_dim=place, end_dim=place + 1)


def _pad(e: Emit, x: Expr, value: Expr | None, *, pad_width: Any, pad_mode: Any) -> Expr:
    modes = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}
    if pad_mode not in modes or not isinstance(pad_width, tuple):
        refuse(f'has no `pad_mode="{pad_mode}"`')
    widths = [integers(pair, "pad_width") for pair in pad_width]
    if pad_mode != "constant":
        while widths and widths[0] == (0, 0):
            widths.pop(0)
    if value is not None and not (isinstance(value, Constant) and is_number(value.value)):
        refuse("is supported with a literal pad value only")
    flat = tuple(n for pair in reversed(widths) for n in pair)
    fill = value.value if isinstance(value, Constant) else 0.0
    attrs = {"value": fill} if pad_mode == "constant" else {}
    return e.call(join.pad, x, pad=flat, mode=modes[pad_mode], **attrs)


def _literal(value: Expr) -> int:
    if not isinstance(value, Constant) or not isinstance(value.value, int):
        refuse("is supported with a literal diagonal only")
    return value.value


def is_number(value: object) -> bool:
    """Tell whether the value of a constant is a number."""
    return isinstance(value, int | float)


SHAPES: Final = (
    Imported(
        name="reshape",
        operands=("data",),
        attributes={"newshape": REQUIRED, "allowzero": False},
        build=_reshape,
    ),
    Imported(name="transpose", operands=("data",), attributes={"axes": None}, build=_transpose),
    Imported(
        name="expand_dims",
        operands=("data",),
        attributes={"axis": REQUIRED, "num_newaxis": 1},
        build=_expand_dims,
    ),
    Imported(name="squeeze", operands=("data",), attributes={"axis": None}, build=_squeeze),
    Imported(
        name="nn.batch_flatten",
        operands=("data",),
        build=lambda e, x: e.call(view.flatten, x, start_dim=1),
    ),
    Imported(
        name="broadcast_to",
        operands=("data",),
        attributes={"shape": REQUIRED, "dtype": ""},
        build=lambda e, x, *, shape, dtype: e.call(view.expand, x, size=integers(shape, "shape")),
    ),
    Imported(
        name="reverse",
        operands=("data",),
        attributes={"axis": REQUIRED},
        build=lambda e, x, *, axis: e.call(view.flip, x, dims=integers(axis, "axis")),
    ),
    Imported(
        name="concatenate",
        operands=("data",),
        attributes={"axis": 0},
        build=lambda e, x, *, axis: e.call(join.cat, x, dim=integer(axis, "axis")),
    ),
    Imported(
        name="stack",
        operands=("data",),
        attributes={"axis": 0},
        build=lambda e, x, *, axis: e.call(join.stack, x, dim=integer(axis, "axis")),
    ),
    Imported(
        name="split",
        operands=("data",),
        attributes={"indices_or_sections": REQUIRED, "axis": 0},
        build=_split,
    ),
    Imported(
        name="tile",
        operands=("data",),
        attributes={"reps": REQUIRED},
        build=lambda e, x, *, reps: e.call(join.tile, x, dims=integers(reps, "reps")),
    ),
    Imported(
        name="repeat",
        operands=("data",),
        attributes={"repeats": REQUIRED, "axis": REQUIRED},
        build=_repeat,
    ),
    Imported(
        name="strided_slice",
        operands=("data",),
        attributes={
            "begin": REQUIRED,
            "end": REQUIRED,
            "strides": (1,),
            "slice_mode": "end",
            "axes": None,
        },
        build=_strided_slice,
    ),
    Imported(
        name="take",
        operands=("data", "indices"),
        attributes={"batch_dims": 0, "axis": None, "mode": "clip"},
        build=_take,
    ),
    Imported(
        name="gather", operands=("data", "indices"), attributes={"axis": REQUIRED}, build=_gather
    ),
    Imported(
        name="one_hot",
        operands=("indices", "on_value", "off_value"),
        attributes={"depth": REQUIRED, "axis": -1, "dtype": REQUIRED},
        build=_one_hot,
    ),
    Imported(
        name="nn.pad",
        operands=("data", "pad_value"),
        optional=1,
        attributes={"pad_width": REQUIRED, "pad_mode": "constant"},
        build=_pad,
    ),
    Imported(
        name="full",
        operands=("fill_value",),
        attributes={"shape": REQUIRED, "dtype": ""},
        build=_full,
    ),
    _filled("zeros", create.zeros),
    _filled("ones", create.ones),
    Imported(
        name="arange",
        operands=("start", "stop", "step"),
        attributes={"start": None, "stop": None, "step": None, "dtype": "float32"},
        build=_arange,
    ),
    Imported(
        name="trilu",
        operands=("data", "k"),
        attributes={"upper": True},
        build=lambda e, x, k, *, upper: e.call(
            create.triu if upper else create.tril, x, diagonal=_literal(k)
        ),
    ),
    Imported(
        name="einsum",
        operands=("data",),
        attributes={"equation": REQUIRED},
        build=lambda e, x, *, equation: e.call(einsum.einsum, x, equation=equation),
    ),
)
