"""Pools element by element: what lies under each window, and under which windows an element lies.

Windows are written out element by element, so bodies give None for large ones. A derivative asks
the windows that cover an element instead of adding to what each window covers: nothing is added at
one place by two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as pairs
from typing import TYPE_CHECKING, Any, Final

from ...ir.bounds import at_most, minimum, positive_part
from ...ir.dims import ZERO, Dim
from .precision import wide_dtype

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ...ir.types import DType

_MOST: Final = 64
"""The elements under a window that are written out; a larger window is left to the library."""

_Pair = tuple[int, int]
_Tap = tuple[tuple[Dim, ...], Any]
"""Coordinates, and the bool value that says whether they lie inside; None where they always do."""


def largest(k: Elements, place: Place, x: Source, *window: Any) -> Any:
    """Return the largest element under a window."""
    if not _is_small(window[0]):
        return None
    taps = _taps(k, place, x.shape, *window)
    found = _read(k, x, next(taps))
    for tap in taps:
        found = k.maximum(found, _read(k, x, tap))
    return found


def largest_and_where(k: Elements, place: Place, x: Source, *attrs: Any) -> Any:
    """Return the largest element under a window, the first of equal ones and the last NaN, and its
    number in the image, as torch does, of a dtype that is the last attribute."""
    *window, dtype = attrs
    if not _is_small(window[0]):
        return None
    taps = _taps(k, place, x.shape, *window)
    first = next(taps)
    best, none = _read(k, x, first), k.cast(k.number(Dim.of(-1)), dtype)
    at = _number(k, first, x, dtype)
    at = at if first[1] is None else k.where(first[1], at, none)
    for tap in taps:
        value, inside = _read(k, x, tap), tap[1]
        better = k.logical_or(k.gt(value, best), k.isnan(value))
        if inside is not None:
            better = k.logical_and(inside, k.logical_or(better, k.eq(at, none)))
        best, at = k.where(better, value, best), k.where(better, _number(k, tap, x, dtype), at)
    return best, at


def _read(k: Elements, x: Source, tap: _Tap) -> Any:
    index, inside = tap
    return x(*index) if inside is None else x.within(index, inside, k.const(float("-inf")))


def _number(k: Elements, tap: _Tap, x: Source, dtype: DType) -> Any:
    index, _ = tap
    return k.cast(k.number(index[-2] * x.shape[-1] + index[-1]), dtype)


def _is_small(kernel: _Pair) -> bool:
    return kernel[0] * kernel[1] <= _MOST


def _taps(
    k: Elements,
    place: Place,
    shape: Sequence[Dim],
    kernel: _Pair,
    stride: _Pair | None,
    padding: _Pair,
    dilation: _Pair,
    ceil_mode: bool,
) -> Iterator[_Tap]:
    """Return the elements under the window at a place, row by row."""
    lines: list[list[tuple[Dim, Any]]] = []
    steps = stride or kernel
    for d in range(2):
        start = place.index[d - 2] * steps[d] - padding[d]
        along = [start + i * dilation[d] for i in range(kernel[d])]
        over = bool(padding[d]) or ceil_mode
        size = shape[d - 2]
        lines.append([(c, _inside(k, c, size, low=padding[d] > 0, high=over)) for c in along])
    for (row, row_in), (column, column_in) in pairs(*lines):
        yield (*place.index[:-2], row, column), _both(k, row_in, column_in)


def _inside(k: Elements, coordinate: Dim, size: Dim, *, low: bool, high: bool) -> Any:
    """Return whether a coordinate lies inside, as far as it may lie too low or too high."""
    here = k.number(coordinate)
    above = k.ge(here, k.number(ZERO)) if low else None
    return _both(k, above, k.lt(here, k.number(size)) if high else None)


def _both(k: Elements, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return k.logical_and(one, other)


def average(
    k: Elements,
    place: Place,
    x: Source,
    kernel: _Pair,
    stride: _Pair | None,
    padding: _Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Any,
) -> Any:
    """Return the average of the elements under a window."""
    if not _is_small(kernel):
        return None
    wide = wide_dtype(x.dtype)
    total: Any = None
    for index, inside in _taps(k, place, x.shape, kernel, stride, padding, (1, 1), ceil_mode):
        value = x(*index) if inside is None else x.within(index, inside, k.const(0.0))
        value = k.cast(value, wide)
        total = value if total is None else k.add(total, value)
    sizes = x.shape[-2:]
    counts = _counts(place.index[-2:], sizes, kernel, stride, padding, ceil_mode, count_include_pad)
    count = counts if divisor is None else Dim.of(divisor)
    return k.cast(k.div(total, k.cast(k.number(count), wide)), x.dtype)


def _counts(
    at: Sequence[Dim],
    sizes: Sequence[Dim],
    kernel: _Pair,
    stride: _Pair | None,
    padding: _Pair,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Dim:
    """Return the number of elements that an average is over, those of the padding included or
    not."""
    found = Dim.of(1)
    for d in range(2):
        start = at[d] * (stride or kernel)[d] - padding[d]
        if not count_include_pad and (padding[d] or ceil_mode):
            width = minimum(start + kernel[d], sizes[d]) - positive_part(start)
        elif ceil_mode:
            width = minimum(start + kernel[d], sizes[d] + padding[d]) - start
        else:
            width = Dim.of(kernel[d])
        found = found * width
    return found


def to_largest(
    k: Elements,
    place: Place,
    g: Source,
    x: Source,
    places: Source,
    kernel: _Pair,
    stride: _Pair | None,
    padding: _Pair,
    dilation: _Pair,
    ceil_mode: bool,
) -> Any:
    """Return the sum over the windows whose largest element this is."""
    reach = tuple((kernel[d] - 1) * dilation[d] + 1 for d in range(2))
    steps = stride or kernel
    if not _is_small((-(-reach[0] // steps[0]), -(-reach[1] // steps[1]))):
        return None
    here = k.cast(k.number(place.index[-2] * x.shape[-1] + place.index[-1]), places.dtype)
    wide, total = wide_dtype(g.dtype), None
    for index, inside in _covering(k, place, g.shape, reach, steps, padding, exact=False):
        none = k.cast(k.number(Dim.of(-1)), places.dtype)
        chosen = places(*index) if inside is None else places.within(index, inside, none)
        value = k.cast(g.within(index, k.eq(chosen, here), k.const(0.0)), wide)
        total = value if total is None else k.add(total, value)
    return k.cast(total, g.dtype)


def to_average(
    k: Elements,
    place: Place,
    g: Source,
    input_size: Sequence[Dim],
    kernel: _Pair,
    stride: _Pair | None,
    padding: _Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Any,
) -> Any:
    """Return the sum of the shares that this element has in the windows which cover it."""
    steps = stride or kernel
    if not _is_small((-(-kernel[0] // steps[0]), -(-kernel[1] // steps[1]))):
        return None
    wide, total = wide_dtype(g.dtype), None
    sizes = input_size[-2:]
    for index, inside in _covering(k, place, g.shape, kernel, steps, padding, exact=True):
        value = g(*index) if inside is None else g.within(index, inside, k.const(0.0))
        at = index[-2:]
        counts = _counts(at, sizes, kernel, steps, padding, ceil_mode, count_include_pad)
        count = counts if divisor is None else Dim.of(divisor)
        if inside is not None and count.constant is None:
            # Where there is no window there is nothing to divide, but not by 0 either.
            count = positive_part(count - 1) + 1
        share = k.div(k.cast(value, wide), k.cast(k.number(count), wide))
        total = share if total is None else k.add(total, share)
    return k.cast(total, g.dtype)


def _covering(
    k: Elements,
    place: Place,
    windows: Sequence[Dim],
    reach: Sequence[int],
    steps: Sequence[int],
    padding: Sequence[int],
    *,
    exact: bool,
) -> Iterator[_Tap]:
    """Return the windows that may reach the element at a place; with `exact` only those that do."""
    lines: list[list[tuple[Dim, Any]]] = []
    for d in range(2):
        from_start, count = place.index[d - 2] + padding[d], windows[d - 2]
        last = (place.shape[d - 2] - 1 + padding[d]) // steps[d]
        line: list[tuple[Dim, Any]] = []
        for back in range(-(-reach[d] // steps[d])):
            window = from_start // steps[d] - back
            high = not at_most(last + 1 - back, count)
            inside = _inside(k, window, count, low=back > 0, high=high)
            if exact and (back + 1) * steps[d] > reach[d]:
                covered = k.lt(k.number(from_start - window * steps[d]), k.number(Dim.of(reach[d])))
                inside = _both(k, inside, covered)
            line.append((window, inside))
        lines.append(line)
    for (row, row_in), (column, column_in) in pairs(*lines):
        yield (*place.index[:-2], row, column), _both(k, row_in, column_in)
