"""Which element of the operand each element of a result is, for operators that only move elements.

Bodies of `Elementwise`. Places are polynomials in the coordinates of the result and the sizes of
the operand, so a fused kernel reads where these say, and nothing is stored in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir.dims import ONE, ZERO, Dim, product

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source


def unmoved(k: Elements, place: Place, x: Source, *_: Any) -> Any:
    """Return the element at the same place."""
    return x(*place.index)


def reshaped(k: Elements, place: Place, x: Source, *_: Any) -> Any:
    """Return the element with the same number, counted row by row."""
    return x(*counted_over(place.index, place.shape, x.shape))


def exchanged(k: Elements, place: Place, x: Source, first: int, second: int) -> Any:
    """Return the element with two coordinates exchanged."""
    index = list(place.index)
    if index:
        index[first], index[second] = index[second], index[first]
    return x(*index)


def permuted(k: Elements, place: Place, x: Source, order: tuple[int, ...]) -> Any:
    """Return the element for dims in another order: dim `i` of the result is `order[i]`."""
    index = dict(zip((d % len(order) for d in order), place.index, strict=True))
    return x(*(index[d] for d in range(len(order))))


def expanded(k: Elements, place: Place, x: Source, *_: Any) -> Any:
    """Return the element that a broadcast operand has for a place."""
    return x(*broadcast_index(place.index, x.shape))


def broadcast_index(index: Sequence[Dim], shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return where a tensor of this shape, broadcast, has the element for a place."""
    inner = index[len(index) - len(shape) :]
    return tuple(ZERO if d == ONE else i for i, d in zip(inner, shape, strict=True))


def narrowed(k: Elements, place: Place, x: Source, dim: int, start: Any, length: Any) -> Any:
    """Return the element as far behind `start` along a dim."""
    first = Dim.of(start)
    if (first.constant or 0) < 0:
        first = x.shape[dim] + first
    return x(*_moved_along(place.index, dim, place.index[dim] + first))


def diagonal_of(k: Elements, place: Place, x: Source, offset: int, dim1: int, dim2: int) -> Any:
    """Return the element at one number along two dims, `offset` apart."""
    rank = len(x.shape)
    a, b = dim1 % rank, dim2 % rank
    rest = iter(place.index[:-1])
    last = place.index[-1]
    along = {a: last + max(0, -offset), b: last + max(0, offset)}
    return x(*(along[d] if d in along else next(rest) for d in range(rank)))


def flipped(k: Elements, place: Place, x: Source, dims: tuple[int, ...]) -> Any:
    """Return the element as far from the other end along dims."""
    gone = {d % len(x.shape) for d in dims}
    pairs = enumerate(zip(place.index, x.shape, strict=True))
    return x(*(n - 1 - i if d in gone else i for d, (i, n) in pairs))


def rolled(
    k: Elements, place: Place, x: Source, shifts: tuple[Any, ...], dims: tuple[int, ...] | None
) -> Any:
    """Return the element that lies `shifts` before along dims, round the end; with dims None, of
    all elements in order."""
    if dims is None:
        total = product(place.shape)
        number = (linear(place.index, place.shape) - Dim.of(shifts[0])) % total
        return x(*counted_over((number,), (total,), x.shape))
    index = place.index
    for shift, dim in zip(shifts, dims, strict=True):
        index = _moved_along(index, dim, (index[dim] - Dim.of(shift)) % x.shape[dim])
    return x(*index)


def _moved_along(index: Sequence[Dim], dim: int, to: Dim) -> tuple[Dim, ...]:
    dim %= len(index)
    return (*index[:dim], to, *index[dim + 1 :])


def linear(index: Sequence[Dim], shape: Sequence[Dim]) -> Dim:
    """Return the number of an element, counted row by row."""
    number = ZERO
    for i, n in zip(index, shape, strict=True):
        number = number * n + (ZERO if n == ONE else i)
    return number


def counted_over(
    index: Sequence[Dim], shape: Sequence[Dim], target: Sequence[Dim]
) -> tuple[Dim, ...]:
    """Return where the element at `index` of one shape is in another with as many elements.

    Dims that go over into each other alone stay apart, so a coordinate is divided only where its
    own dim was merged or cut.
    """
    found: list[Dim] = []
    source, rest = tuple(zip(index, shape, strict=True)), tuple(target)
    while source or rest:
        merged, cut = _next_group(source, rest)
        source, rest = source[len(merged) :], rest[len(cut) :]
        found += _cut([i for i, _ in merged], [n for _, n in merged], cut)
    return tuple(found)


def _next_group(
    source: Sequence[tuple[Dim, Dim]], target: Sequence[Dim]
) -> tuple[Sequence[tuple[Dim, Dim]], Sequence[Dim]]:
    """Return the fewest leading dims of both sides that have one number of elements; all, where
    that is undecided."""
    left, right = (1, 0) if source else (0, 1)
    while True:
        a = product(tuple(n for _, n in source[:left]))
        b = product(tuple(target[:right]))
        if a == b:
            return source[:left], target[:right]
        if right < len(target) and _divides(b, a):
            right += 1
        elif left < len(source) and _divides(a, b):
            left += 1
        else:
            return source, target


def _divides(divisor: Dim, dim: Dim) -> bool:
    return dim.exact_quotient(divisor) is not None


def _cut(index: Sequence[Dim], shape: Sequence[Dim], target: Sequence[Dim]) -> list[Dim]:
    number = linear(index, shape)
    if len(index) == len(target) == 1:
        return [index[0]]
    found: list[Dim] = []
    behind = ONE
    for place, size in reversed(list(enumerate(target))):
        # Nothing lies before the first dim that is not of size 1, so nothing is taken off it.
        is_first = all(n == ONE for n in target[:place])
        whole = number // behind
        found.append(ZERO if size == ONE else whole if is_first else whole % size)
        behind = behind * size
    return found[::-1]
