"""Relay's `dyn` operators, whose sizes are the elements of a tensor that the running program knows.

The number of elements must be known, since the rank follows from it. Each element becomes a size
(`as_size`), after the codes that Relay has for sizes are computed away in integers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ..ir.dims import product
from ..ir.expr import Expr
from ..ir.op import Op
from ..ir.types import DType, int64
from ..operators.host.sizes import as_size
from ..operators.primitive import arithmetic, compare, create, gathering, index, join, view
from ..operators.primitive.reduce import sum_
from . import attributes
from .attributes import Attribute, only, optional, refuse, word
from .imported import Emit, Imported, always
from .lookups import LOOKUPS
from .reductions import REDUCTIONS
from .resizing import RESIZING, UPSAMPLING, upsampled

_ROW: Final = (("int", 0),)
_PLAIN: Final = {op.name: op for op in (*LOOKUPS, *RESIZING, *REDUCTIONS)}
"""The operators of the same name whose sizes are attributes."""


def _elements(e: Emit, numbers: Expr) -> list[Expr]:
    """Return the elements of a vector of integers, or of rows of them, as numbers."""
    shape = e.shape(numbers)
    count = product(shape).constant if shape else None
    if count is None:
        refuse("needs sizes as a vector whose length is a number")
    numbers = e.call(view.reshape, numbers, shape=(count,))
    numbers = e.named(e.call(compare.cast, numbers, dtype=int64))
    return [_element(e, numbers, e.number(place)) for place in range(count)]


def _element(e: Emit, numbers: Expr, place: Expr) -> Expr:
    return e.named(e.call(index.index, numbers, e.tuple(place), spec=_ROW))


def _single(e: Emit, number: Expr) -> Expr:
    """Return a number, or the one element of a vector, as an integer."""
    if e.shape(number):
        number = e.call(view.reshape, number, shape=())
    return e.named(e.call(compare.cast, number, dtype=int64))


def _size(e: Emit, number: Expr) -> Expr:
    return e.named(e.call(as_size, number))


def _sizes(e: Emit, numbers: Expr) -> tuple[Expr, ...]:
    return tuple(_size(e, number) for number in _elements(e, numbers))


def _combined(e: Emit, op: Op, *operands: Expr | int) -> Expr:
    """Return the value of an operator on integers, by a name."""
    given = [e.number(o, int64) if isinstance(o, int) else o for o in operands]
    return e.named(e.call(op, *given))


def _either(e: Emit, left: Expr, right: Expr | int, then: Expr | int, otherwise: Expr) -> Expr:
    """Return `then` where two integers are equal."""
    return _combined(e, compare.where, _combined(e, compare.equal, left, right), then, otherwise)


def _shape(e: Emit, x: Expr) -> list[Expr]:
    return [e.named(e.call(compare.cast, e.size(x, d), dtype=int64)) for d in range(e.rank(x))]


def _product(e: Emit, numbers: list[Expr]) -> Expr:
    total: Expr = e.number(1, int64)
    for number in numbers:
        total = _combined(e, arithmetic.multiply, total, number)
    return total


def _reshape(e: Emit, x: Expr, shape: Expr, **_: Any) -> Expr:
    """Relay's codes: 0 keeps a dim, -1 is what is left, -3 joins two dims."""
    x = e.named(x)
    own, codes = _shape(e, x), _elements(e, shape)
    if not own:
        return e.call(view.reshape, x, shape=(1,) * len(codes))
    whole = e.named(e.call(join.stack, e.tuple(*own), dim=0))
    source: Expr = e.number(0, int64)
    sizes: list[Expr] = []
    for code in codes:
        places = source, _combined(e, arithmetic.add, source, 1)
        nearest = (_combined(e, arithmetic.minimum, p, len(own) - 1) for p in places)
        here, behind = (_element(e, whole, p) for p in nearest)
        joined = _combined(e, arithmetic.multiply, here, behind)
        sizes.append(_either(e, code, -3, joined, _either(e, code, 0, here, code)))
        after = _combined(e, arithmetic.add, source, 2)
        source = _either(e, code, -3, after, places[1])
    known = _product(e, [_either(e, size, -1, 1, size) for size in sizes])
    left = _combined(e, arithmetic.floor_divide, _product(e, own), known)
    found = tuple(_size(e, _either(e, size, -1, left, size)) for size in sizes)
    return e.call(view.reshape, x, shape=found)


def _full(e: Emit, value: Expr, shape: Expr, *, dtype: DType | None) -> Expr:
    if dtype is not None:
        value = e.call(compare.cast, value, dtype=dtype)
    return e.call(view.expand, value, size=_sizes(e, shape))


def _strided_slice(
    e: Emit, x: Expr, begin: Expr, end: Expr, strides: Expr, *, slice_mode: str, axes: Any
) -> Expr:
    """Build the elements at computed places, one dim after the other."""
    x = e.named(x)
    own = _shape(e, x)
    bounds = [_elements(e, numbers) for numbers in (begin, end, strides)]
    places = tuple(range(len(bounds[0]))) if axes is None else axes
    if len({len(places), *map(len, bounds)}) > 1:
        refuse("needs as many `begin` as `end` and `strides`")
    for dim, start, stop, step in zip(places, *bounds, strict=True):
        size = own[dim]
        if slice_mode == "size":
            whole = _combined(e, arithmetic.add, start, stop)
            stop, step = _either(e, stop, -1, size, whole), e.number(1, int64)
        x = e.named(e.call(gathering.index_select, x, _places(e, size, start, stop, step), dim=dim))
    return x


def _places(e: Emit, size: Expr, start: Expr, stop: Expr, step: Expr) -> Expr:
    """Build the places from `start` to `stop`, as a slice of Python has them."""
    back = _combined(e, compare.less, step, 0)
    # Going back, a slice may end before the first place.
    least = _combined(e, compare.where, back, -1, e.number(0, int64))
    most = _combined(e, arithmetic.add, size, least)
    ends: list[Expr] = []
    for bound in (start, stop):
        from_start = _combined(e, arithmetic.add, bound, size)
        is_below = _combined(e, compare.less, bound, 0)
        found = _combined(e, compare.where, is_below, from_start, bound)
        found = _combined(e, arithmetic.maximum, found, least)
        ends.append(_combined(e, arithmetic.minimum, found, most))
    length = _combined(e, arithmetic.subtract, ends[1], ends[0])
    over = _combined(e, arithmetic.subtract, length, _combined(e, arithmetic.sign, step))
    count = _combined(e, arithmetic.floor_divide, over, step)
    count = _combined(e, arithmetic.maximum, _combined(e, arithmetic.add, count, 1), 0)
    along = e.call(create.arange, end=_size(e, count), dtype=int64)
    return e.call(arithmetic.add, e.call(arithmetic.multiply, along, step), ends[0])


def _from_start(e: Emit, axis: Expr, rank: int) -> Expr:
    return _combined(e, arithmetic.mod, axis, rank)


def _squeeze(e: Emit, x: Expr, axis: Expr) -> Expr:
    """Build the tensor in the shape that is left: as many dims fewer as `axis` has elements."""
    x = e.named(x)
    own = _shape(e, x)
    gone = [_from_start(e, a, len(own)) for a in _elements(e, axis)]
    count = len(own) - len(gone)
    shape: list[Expr] = [e.number(1, int64)] * count
    before: Expr = e.number(0, int64)
    for dim, size in enumerate(own):
        place = before
        for a in gone:
            place = _either(e, a, dim, -1, place)
        shape = [_either(e, place, i, size, known) for i, known in enumerate(shape)]
        after = _combined(e, arithmetic.add, before, 1)
        before = _either(e, place, -1, before, after)
    return e.call(view.reshape, x, shape=tuple(_size(e, size) for size in shape))


def _expand_dims(e: Emit, x: Expr, axis: Expr, *, num_newaxis: int) -> Expr:
    x = e.named(x)
    own = _shape(e, x)
    rank = len(own) + num_newaxis
    first = _from_start(e, _single(e, axis), len(own) + 1)
    shape: list[Expr] = []
    for place in range(rank):
        # The size is 1 from the axis on, that of the dim before it or behind the new ones else.
        size: Expr = own[place] if place < len(own) else e.number(1, int64)
        for axis_here in range(place + 1):
            old = place - num_newaxis
            is_new = axis_here > old
            size = _either(e, first, axis_here, 1 if is_new else own[old], size)
        shape.append(size)
    return e.call(view.reshape, x, shape=tuple(_size(e, size) for size in shape))


def _pad(e: Emit, x: Expr, widths: Expr, value: Expr | None, *, pad_mode: str) -> Expr:
    flat = _sizes(e, widths)
    pairs = zip(reversed(flat[::2]), reversed(flat[1::2]), strict=True)
    pad = partial(e.call, join.pad, pad=tuple(n for p in pairs for n in p), mode=pad_mode)
    if value is None:
        return pad(x)
    x = e.named(x)
    is_inside = e.call(compare.equal, pad(e.call(create.ones_like, x)), e.number(1))
    return e.call(compare.where, is_inside, pad(x), value)


def _collapse_sum_to(e: Emit, x: Expr, shape: Expr) -> Expr:
    """Build the sum over the dims whose size is another one in `shape`."""
    x = e.named(x)
    own, sizes = _shape(e, x), _elements(e, shape)
    first = len(own) - len(sizes)
    if first < 0:
        refuse("needs a `shape` of no more dims than its data")
    if first:
        x = e.named(e.call(sum_, x, dim=tuple(range(first))))
    for dim, (size, wanted) in enumerate(zip(own[first:], sizes, strict=True)):
        # The sum is one element, which stands here at all places of the dim.
        whole = e.call(sum_, x, dim=(dim,), keepdim=True)
        x = e.call(compare.where, _combined(e, compare.equal, size, wanted), x, whole)
        along = e.call(create.arange, end=_size(e, wanted), dtype=int64)
        x = e.named(e.call(gathering.index_select, x, along, dim=dim))
    return x


def _upsampling(e: Emit, x: Expr, height: Expr, width: Expr, **how: Any) -> Expr:
    scales = (e.call(view.reshape, scale, shape=()) for scale in (height, width))
    first, second = scales
    return upsampled(e, x, (first, second), **how)


def _sized(name: str, *operands: str, size: str, at: int, single: bool = False) -> Imported:
    """Return an operator that is the one of the same name with the operand at place `at` as its
    attribute `size`."""
    plain = _PLAIN[name]

    def build(e: Emit, *args: Expr, **attrs: Any) -> Expr:
        number = args[at]
        value = _size(e, _single(e, number)) if single else _sizes(e, number)
        return plain.build(e, *args[:at], *args[at + 1 :], **{size: value}, **attrs)

    left = {n: a for n, a in plain.attributes.items() if n != size}
    return Imported(
        name=f"dyn.{name}", operands=operands, attributes=left, build=build, needs_types=always
    )


def _filled(name: str, op: Op) -> Imported:
    def build(e: Emit, shape: Expr, *, dtype: DType | None) -> Expr:
        return e.call(op, size=_sizes(e, shape), dtype=dtype)

    return _dynamic(name, ("shape",), build, dtype=optional(attributes.dtype))


def _dynamic(
    name: str, operands: tuple[str, ...], build: Any, optional_: int = 0, **attrs: Attribute
) -> Imported:
    return Imported(
        name=name,
        operands=operands,
        optional=optional_,
        attributes=attrs,
        build=build,
        needs_types=always,
    )


def _with_sizes(op: Op, attribute: str, e: Emit, x: Expr, sizes: Expr, **_: Any) -> Expr:
    return e.call(op, x, **{attribute: _sizes(e, sizes)})


DYNAMIC: Final = (
    _dynamic(
        "dyn.reshape",
        ("data", "newshape"),
        _reshape,
        newshape=only(()),
        allowzero=only(False),
    ),
    _dynamic("dyn.broadcast_to", ("data", "shape"), partial(_with_sizes, view.expand, "size")),
    _dynamic("dyn.tile", ("data", "reps"), partial(_with_sizes, join.tile, "dims")),
    _dynamic("collapse_sum_to", ("data", "shape"), _collapse_sum_to),
    _dynamic("dyn.full", ("fill_value", "shape"), _full, dtype=optional(attributes.dtype)),
    _filled("dyn.zeros", create.zeros),
    _filled("dyn.ones", create.ones),
    _dynamic(
        "dyn.strided_slice",
        ("data", "begin", "end", "strides"),
        _strided_slice,
        slice_mode=Attribute(word("end", "size"), "end"),
        axes=optional(attributes.integers),
    ),
    _dynamic("dyn.squeeze", ("data", "axis"), _squeeze),
    _dynamic(
        "dyn.expand_dims",
        ("data", "axis"),
        _expand_dims,
        num_newaxis=Attribute(attributes.integer, 1),
    ),
    _dynamic(
        "dyn.nn.pad",
        ("data", "pad_width", "pad_value"),
        _pad,
        1,
        pad_mode=only("constant"),
    ),
    _sized("topk", "data", "k", size="k", at=1, single=True),
    _sized(
        *("one_hot", "indices", "on_value", "off_value", "depth"), size="depth", at=3, single=True
    ),
    _sized("image.resize2d", "data", "size", size="size", at=1),
    _sized(
        *("sparse_to_dense", "sparse_indices", "sparse_values", "default_value", "output_shape"),
        size="output_shape",
        at=3,
    ),
    _dynamic("dyn.nn.upsampling", ("data", "scale_h", "scale_w"), _upsampling, 0, **UPSAMPLING),
)
