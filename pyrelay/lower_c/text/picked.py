"""Vectors of elements at places that are known apart: few whole vectors, and shuffles of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.dims import Dim
from ...ir.types import DType, bool_
from ...kernels.plans.terms import widened
from ...kernels.plans.text import Text, call, infix
from .emit import KernelText

_MOST: Final = 4
"""The vectors that are loaded for one."""


def places_apart(
    kernel: KernelText, place: Dim, lane: str | None, count: int
) -> tuple[int, ...] | None:
    """Return how far behind the first one `count` places along a lane lie; None where that is not
    known, or where they lie so far apart that it takes many vectors to load them."""
    if lane is None or lane not in place.names():
        return None
    places = [kernel.simplified(place.rename({lane: Dim.of(n)})) for n in range(count)]
    found = [(p - places[0]).constant for p in places]
    apart = tuple(p for p in found if p is not None)
    if len(apart) < count or max(apart) - min(apart) >= _MOST * kernel.lanes:
        return None
    return apart


def picked(kernel: KernelText, dtype: DType, first: Text, apart: Sequence[int]) -> Text:
    """Return the load of elements that lie so far behind one."""
    lanes, lowest = kernel.lanes, min(apart)
    span = max(apart) - lowest + 1
    load = kernel.function("load_part", dtype)
    vectors: list[Text] = []
    for begin in range(0, span, lanes):
        where = first if lowest + begin == 0 else infix(first, "+", Text(str(lowest + begin)))
        vectors.append(call(load, where, str(min(lanes, span - begin))))
    places = [p - lowest for p in apart]
    places += places[-1:] * (lanes - len(places))
    pairs = [
        _mixed(kernel, dtype, vectors[n], vectors[min(n + 1, len(vectors) - 1)], places)
        for n in range(0, len(vectors), 2)
    ]
    if len(pairs) == 1:
        return pairs[0]
    return _mixed(
        kernel,
        dtype,
        pairs[0],
        pairs[1],
        [n + lanes * (p >= 2 * lanes) for n, p in enumerate(places)],
    )


def _mixed(kernel: KernelText, dtype: DType, one: Text, other: Text, places: Sequence[int]) -> Text:
    """Return the lanes of two vectors at some places, of which those beyond wrap around."""
    of = kernel.place_element if dtype == bool_ else f"i{widened(dtype).bits}"
    numbers = ", ".join(str(p % (2 * kernel.lanes)) for p in places)
    return Text(f"MIXED ({one}, {other}, {of}x{kernel.lanes}, {numbers})")
