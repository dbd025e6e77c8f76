"""Relay's operators on shapes: views, joins, slices, sizes, and tensors made of nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from ..ir.expr import Constant, Expr, Tuple
from ..ir.types import DType, float32, int32
from ..operators.composite import einsum
from ..operators.host import sizes
from ..operators.primitive import arithmetic, compare, create, index, join, parts, view
from . import attributes
from .attributes import Attribute, only, optional, refuse, word
from .imported import Emit, Imported, always, counts_from_the_end

_AXIS: Final = Attribute(attributes.integer)
_FIRST_AXIS: Final = Attribute(attributes.integer, 0)
_INTEGERS: Final = Attribute(attributes.integers)
_DTYPE: Final = optional(attributes.dtype)


def _reshape(e: Emit, x: Expr, *, newshape: tuple[int, ...], allowzero: bool) -> Expr:
    """Relay's codes: 0 keeps a dim, -1 is what is left, -2 keeps all that follow, -3 joins two
    dims, -4 splits one."""
    x = e.named(x)
    shape: list[Any] = []
    source = 0
    codes = list(newshape)
    while codes:
        code = codes.pop(0)
        match code:
            case 0 if not allowzero:
                shape.append(e.size(x, source))
                source += 1
            case -2:
                shape += [e.size(x, d) for d in range(source, e.rank(x))]
                source = e.rank(x)
            case -3:
                pair = [e.size(x, source + i) for i in range(2)]
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
    whole = e.size(x, source)
    if first == -1:
        return [e.call(arithmetic.floor_divide, whole, e.number(second)), second]
    if second == -1:
        return [first, e.call(arithmetic.floor_divide, whole, e.number(first))]
    return [first, second]


def _reverse_reshape(e: Emit, x: Expr, *, newshape: tuple[int, ...]) -> Expr:
    """Relay's codes, which count from the last dim: 0, -1, -2 and -3, as for `reshape`."""
    x = e.named(x)
    shape: list[Any] = []
    left = list(range(e.rank(x)))
    for code in reversed(newshape):
        match code:
            case 0 if left:
                shape.append(e.size(x, left.pop()))
            case -2:
                shape += [e.size(x, d) for d in reversed(left)]
                left.clear()
            case -3 if len(left) > 1:
                pair = [e.size(x, left.pop()) for _ in range(2)]
                shape.append(e.call(arithmetic.multiply, *pair))
            case _ if code < -1 or not (code or left):
                refuse(f"has the code {code} in `newshape`, which is not supported here")
            case _:
                shape.append(code)
                left[-1:] = ()
    return e.call(view.reshape, x, shape=tuple(reversed(shape)))


def _transpose(e: Emit, x: Expr, *, axes: tuple[int, ...] | None) -> Expr:
    return e.call(view.permute, x, dims=axes or tuple(reversed(range(e.rank(x)))))


def _expand_dims(e: Emit, x: Expr, *, axis: int, num_newaxis: int) -> Expr:
    if num_newaxis < 0:
        refuse("needs a `num_newaxis` of 0 or more")
    for _ in range(num_newaxis):
        x = e.call(view.unsqueeze, x, dim=axis)
    return x


def _split(e: Emit, x: Expr, *, indices_or_sections: Any, axis: int) -> Expr:
    x = e.named(x)
    size = e.size(x, axis)
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            refuse("needs an `indices_or_sections` of 1 or more")
        length = e.call(arithmetic.floor_divide, size, e.number(count))
        return e.call(parts.split, x, split_size_or_sections=(length,) * count, dim=axis)
    places = (0, *indices_or_sections)
    lengths: list[Any] = [b - a for a, b in itertools.pairwise(places)]
    if any(length < 0 for length in lengths):
        refuse("needs `indices_or_sections` in ascending order")
    lengths.append(e.call(arithmetic.subtract, size, e.number(places[-1])))
    return e.call(parts.split, x, split_size_or_sections=tuple(lengths), dim=axis)


_END: Final = 2**31 - 1
"""From here on an end is that of the tensor."""


def _strided_slice(e: Emit, x: Expr, **attrs: Any) -> Expr:
    starts, stops, mode = attrs["begin"], attrs["end"], attrs["slice_mode"]
    steps = attrs["strides"] or (1,)
    steps = steps * len(starts) if len(steps) == 1 else steps
    places = tuple(range(len(starts))) if attrs["axes"] is None else attrs["axes"]
    if len({len(starts), len(stops), len(steps), len(places)}) > 1:
        refuse("needs as many `begin` as `end`, `strides` and `axes`")
    if any(p < 0 for p in places):
        places = tuple(p % e.rank(x) for p in places)
    if 0 in steps or len(set(places)) < len(places):
        refuse("needs different `axes` and `strides` other than 0")
    spec: list[tuple[Any, ...]] = [("slice", None, None, None)] * (max(places, default=-1) + 1)
    for place, start, stop, step in zip(places, starts, stops, steps, strict=True):
        if mode == "size":
            end = None if stop == -1 or (start < 0 <= start + stop) else start + stop
            spec[place] = ("slice", start, end, 1)
        else:
            spec[place] = ("slice", start, None if stop >= _END else stop, step)
    return e.call(index.index, x, Tuple((), span=e.span), spec=tuple(spec))


def _slices_from_the_end(attrs: Mapping[str, Any]) -> bool:
    return any(place < 0 for place in attrs["axes"] or ())


def _shape_of(e: Emit, x: Expr, *, dtype: DType) -> Expr:
    x = e.named(x)
    found = [e.call(compare.cast, e.size(x, dim), dtype=dtype) for dim in range(e.rank(x))]
    if not found:
        return e.call(create.zeros, size=(0,), dtype=dtype)
    return e.call(join.stack, e.tuple(*found), dim=0)


def _full(e: Emit, value: Expr, *, shape: tuple[int, ...], dtype: DType | None) -> Expr:
    if dtype is not None:
        value = e.call(compare.cast, value, dtype=dtype)
    return e.call(view.expand, value, size=shape)


def _filled(name: str, op: Any) -> Imported:
    return Imported(
        name=name,
        operands=(),
        attributes={"shape": _INTEGERS, "dtype": _DTYPE},
        build=lambda e, *, shape, dtype: e.call(op, size=shape, dtype=dtype),
    )


def _arange(e: Emit, *bounds: Expr, dtype: DType, **written: Any) -> Expr:
    """Build a range. Relay writes its bounds a second time, as attributes, which must agree."""
    found: list[Any] = []
    for bound, (name, again) in zip(bounds, written.items(), strict=True):
        if not isinstance(bound, Constant) or not is_number(bound.value):
            refuse("is supported with literal bounds only")
        if again is not None and again != bound.value:
            refuse(f"has another `{name}` as its attribute than as its operand")
        found.append(bound.value)
    return e.call(create.arange, start=found[0], end=found[1], step=found[2], dtype=dtype)


def _repeat(e: Emit, x: Expr, *, repeats: int, axis: int | None) -> Expr:
    if repeats < 1:
        refuse("needs a `repeats` of 1 or more")
    if axis is None:
        x, place = e.call(view.reshape, x, shape=(-1,)), 0
    else:
        place = axis if axis >= 0 else axis + e.rank(x)
    x = e.named(x)
    spread = e.call(join.stack, e.tuple(*(x,) * repeats), dim=place + 1)
    return e.call(view.flatten, spread, start_dim=place, end_dim=place + 1)


_PAD_MODES: Final = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}


def _pad(e: Emit, x: Expr, value: Expr | None, *, pad_width: Any, pad_mode: str) -> Expr:
    widths = list(pad_width)
    if pad_mode != "constant":
        while widths and widths[0] == (0, 0):
            widths.pop(0)
    if value is not None and not (isinstance(value, Constant) and is_number(value.value)):
        refuse("is supported with a literal pad value only")
    flat = tuple(n for pair in reversed(widths) for n in pair)
    fill = value.value if isinstance(value, Constant) else 0
    attrs = {"value": fill} if pad_mode == "constant" else {}
    return e.call(join.pad, x, pad=flat, mode=_PAD_MODES[pad_mode], **attrs)


def _literal(value: Expr) -> int:
    if not isinstance(value, Constant) or not isinstance(value.value, int):
        refuse("is supported with a literal diagonal only")
    return value.value


def is_number(value: object) -> bool:
    """Return whether the value of a constant is a number."""
    return isinstance(value, int | float)


SHAPES: Final = (
    Imported(
        name="reshape",
        operands=("data",),
        attributes={
            "newshape": _INTEGERS,
            "allowzero": Attribute(attributes.flag, default=False),
        },
        build=_reshape,
        needs_types=lambda attrs: -2 in attrs["newshape"],
    ),
    Imported(
        name="contrib_reverse_reshape",
        operands=("data",),
        attributes={"newshape": _INTEGERS},
        build=_reverse_reshape,
        needs_types=always,
    ),
    Imported(
        name="transpose",
        operands=("data",),
        attributes={"axes": optional(attributes.integers)},
        build=_transpose,
        needs_types=lambda attrs: not attrs["axes"],
    ),
    Imported(
        name="expand_dims",
        operands=("data",),
        attributes={"axis": _AXIS, "num_newaxis": Attribute(attributes.integer, 1)},
        build=_expand_dims,
    ),
    Imported(
        name="squeeze",
        operands=("data",),
        attributes={"axis": optional(attributes.integers)},
        build=lambda e, x, *, axis: e.call(view.squeeze, x, dim=axis),
    ),
    Imported(
        name="nn.batch_flatten",
        operands=("data",),
        build=lambda e, x: e.call(view.flatten, x, start_dim=1),
    ),
    Imported(
        name="broadcast_to",
        operands=("data",),
        attributes={"shape": _INTEGERS, "dtype": only("")},
        build=lambda e, x, *, shape, dtype: e.call(view.expand, x, size=shape),
    ),
    Imported(
        name="reverse",
        operands=("data",),
        attributes={"axis": _INTEGERS},
        build=lambda e, x, *, axis: e.call(view.flip, x, dims=axis),
    ),
    Imported(
        name="concatenate",
        operands=("data",),
        attributes={"axis": _FIRST_AXIS},
        build=lambda e, x, *, axis: e.call(join.cat, x, dim=axis),
    ),
    Imported(
        name="stack",
        operands=("data",),
        attributes={"axis": _FIRST_AXIS},
        build=lambda e, x, *, axis: e.call(join.stack, x, dim=axis),
    ),
    Imported(
        name="split",
        operands=("data",),
        attributes={"indices_or_sections": Attribute(attributes.cuts), "axis": _FIRST_AXIS},
        build=_split,
    ),
    Imported(
        name="tile",
        operands=("data",),
        attributes={"reps": _INTEGERS},
        build=lambda e, x, *, reps: e.call(join.tile, x, dims=reps),
    ),
    Imported(
        name="repeat",
        operands=("data",),
        attributes={
            "repeats": Attribute(attributes.integer),
            "axis": optional(attributes.integer),
        },
        build=_repeat,
        needs_types=counts_from_the_end,
    ),
    Imported(
        name="strided_slice",
        operands=("data",),
        attributes={
            "begin": _INTEGERS,
            "end": _INTEGERS,
            "strides": Attribute(attributes.integers, (1,)),
            "slice_mode": Attribute(word("end", "size"), "end"),
            "axes": optional(attributes.integers),
        },
        build=_strided_slice,
        needs_types=_slices_from_the_end,
    ),
    Imported(
        name="shape_of",
        operands=("data",),
        attributes={"dtype": Attribute(attributes.dtype, int32)},
        build=_shape_of,
        needs_types=always,
    ),
    Imported(
        name="ndarray_size",
        operands=("data",),
        attributes={"dtype": Attribute(attributes.dtype, int32)},
        build=lambda e, x, *, dtype: e.call(compare.cast, e.call(sizes.numel, x), dtype=dtype),
    ),
    Imported(
        name="nn.pad",
        operands=("data", "pad_value"),
        optional=1,
        attributes={
            "pad_width": Attribute(attributes.pairs),
            "pad_mode": Attribute(word(*_PAD_MODES), "constant"),
        },
        build=_pad,
    ),
    Imported(
        name="full",
        operands=("fill_value",),
        attributes={"shape": _INTEGERS, "dtype": _DTYPE},
        build=_full,
    ),
    _filled("zeros", create.zeros),
    _filled("ones", create.ones),
    Imported(
        name="arange",
        operands=("start", "stop", "step"),
        attributes={
            **dict.fromkeys(("start", "stop", "step"), optional(attributes.number)),
            "dtype": Attribute(attributes.dtype, float32),
        },
        build=_arange,
    ),
    Imported(
        name="trilu",
        operands=("data", "k"),
        attributes={"upper": Attribute(attributes.flag, default=True)},
        build=lambda e, x, k, *, upper: e.call(
            create.triu if upper else create.tril, x, diagonal=_literal(k)
        ),
    ),
    Imported(
        name="einsum",
        operands=("data",),
        attributes={"equation": Attribute(attributes.text)},
        build=lambda e, x, *, equation: e.call(einsum.einsum, x, equation=equation),
    ),
)
