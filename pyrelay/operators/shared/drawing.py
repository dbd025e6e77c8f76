"""Random numbers element by element: the words of Philox as integers of a kernel.

The rounds are those of `philox.philox`, on words that compute with `Elements`; so every lowering
draws the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final

from ...ir.dims import ONE, ZERO, Dim
from ...ir.types import DType, float32, float64, int64
from . import philox
from .moving import broadcast_index, linear

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source

_Words = tuple["_Word", "_Word", "_Word", "_Word"]


@final
class _Word:
    """An int64 value with the arithmetic that Philox needs."""

    __slots__ = ("k", "value")

    def __init__(self, k: Elements, value: Any) -> None:
        self.k: Final = k
        self.value: Final = value

    def _other(self, other: _Word | int) -> Any:
        return other.value if isinstance(other, _Word) else self.k.number(Dim.of(other))

    def _bits(self, operator: str, other: _Word | int) -> _Word:
        return _Word(self.k, self.k.bits(self.value, operator, self._other(other)))

    def __mul__(self, other: _Word | int) -> _Word:
        return _Word(self.k, self.k.mul(self.value, self._other(other)))

    def __add__(self, other: _Word | int) -> _Word:
        return _Word(self.k, self.k.add(self.value, self._other(other)))

    def __rshift__(self, other: int) -> _Word:
        return self._bits(">>", other)

    def __lshift__(self, other: int) -> _Word:
        return self._bits("<<", other)

    def __and__(self, other: _Word | int) -> _Word:
        return self._bits("&", other)

    def __or__(self, other: _Word | int) -> _Word:
        return self._bits("|", other)

    def __xor__(self, other: _Word | int) -> _Word:
        return self._bits("^", other)

    __rxor__ = __xor__


def _key(k: Elements, key: Source) -> tuple[_Word, _Word]:
    return _Word(k, key(ZERO)), _Word(k, key(ONE))


def _block(k: Elements, key: Source, counter: _Word, purpose: int) -> _Words:
    """Return the four words of a 64-bit counter under a key."""
    halves = counter & philox.MASK, (counter >> 32) & philox.MASK
    return philox.philox((*halves, 0, purpose), _key(k, key))


def _at(k: Elements, coordinate: Dim, words: Sequence[_Word]) -> Any:
    """Return the word with a number."""
    here = k.number(coordinate)
    found = words[-1].value
    for number, word in reversed(list(enumerate(words[:-1]))):
        found = k.where(k.eq(here, k.number(Dim.of(number))), word.value, found)
    return found


def _pair(k: Elements, coordinate: Dim, words: _Words) -> tuple[_Word, _Word]:
    """Return the first two words for 0, the last two for 1."""
    is_first = k.eq(k.number(coordinate), k.number(ZERO))
    both = zip(words[:2], words[2:], strict=True)
    first, second = (_Word(k, k.where(is_first, a.value, b.value)) for a, b in both)
    return first, second


def seeded(k: Elements, place: Place, seed: Any) -> Any:
    """Return a word of the key of a seed that is a number."""
    return _halves(k, place, _Word(k, k.number(Dim.of(seed))))


def seeded_by(k: Elements, place: Place, seed: Source) -> Any:
    """Return a word of the key of a seed that is computed."""
    return _halves(k, place, _Word(k, k.cast(seed(), int64)))


def _halves(k: Elements, place: Place, seed: _Word) -> Any:
    return _at(k, place.index[0], (seed & philox.MASK, (seed >> 32) & philox.MASK))


def folded_in(k: Elements, place: Place, key: Source, data: Source) -> Any:
    """Return a word of the key for a number under a key."""
    counter = _Word(k, k.cast(data(), int64))
    return _at(k, place.index[0], _block(k, key, counter, philox.FOLD)[:2])


def split_off(k: Elements, place: Place, key: Source, count: Any) -> Any:
    """Return a word of one of several keys made of one."""
    row, column = place.index
    counter = _Word(k, k.number(row))
    return _at(k, column, _block(k, key, counter, philox.SPLIT)[:2])


def numbered(k: Elements, place: Place, keys: Source, counter: Source, purpose: int) -> Any:
    """Return one of the four words of a counter, both of which are tensors, under a key."""
    *lead, column = place.index
    at = broadcast_index(lead, keys.shape[:-1])
    key = tuple(_Word(k, keys(*at, half)) for half in (ZERO, ONE))
    number = _Word(k, k.cast(counter(*broadcast_index(lead, counter.shape)), int64))
    halves = number & philox.MASK, (number >> 32) & philox.MASK
    return _at(k, column, philox.philox((*halves, 0, purpose), (key[0], key[1])))


def word(k: Elements, place: Place, key: Source) -> Any:
    """Return the word drawn for a place, counted row by row."""
    number = linear(place.index, place.shape)
    return _at(k, number % 4, _block(k, key, _Word(k, k.number(number // 4)), philox.DRAW))


def uniform(
    k: Elements, place: Place, key: Source, size: Any, low: Any, high: Any, dtype: DType | None
) -> Any:
    """Return a number from `low` up to `high`."""
    dtype = dtype or float32
    if dtype == float64:
        found = _share(k, _words_of_two(k, place, key), dtype)
    else:
        found = _share(k, (_Word(k, word(k, place, key)),), dtype)
    if (low, high) == (0.0, 1.0):
        return found
    return k.add(k.const(low), k.mul(k.const(high - low), found))


def _words_of_two(k: Elements, place: Place, key: Source) -> tuple[_Word, _Word]:
    """Return the two words drawn for a place where each has two."""
    number = linear(place.index, place.shape)
    words = _block(k, key, _Word(k, k.number(number // 2)), philox.DRAW)
    return _pair(k, number % 2, words)


def _share(k: Elements, words: Sequence[_Word], dtype: DType) -> Any:
    """Return a number of at least 0 and below 1 from one word, or two for one of float64."""
    bits = philox.PRECISION[dtype.name]
    first = words[0]
    whole = (
        first >> (32 - bits) if bits <= 32 else (first << (bits - 32)) | (words[1] >> (64 - bits))
    )
    return k.mul(k.cast(whole.value, dtype), k.constant(2.0**-bits, dtype))


def normal(k: Elements, place: Place, key: Source, size: Any, dtype: DType | None) -> Any:
    """Return a number from the standard normal distribution, of two that Box and Muller make."""
    dtype = dtype or float32
    number = linear(place.index, place.shape)
    which, pair = number % 2, number // 2
    if dtype == float64:
        wide = float64
        words = _block(k, key, _Word(k, k.number(pair)), philox.DRAW)
        shares = [_share(k, words[i : i + 2], wide) for i in (0, 2)]
    else:
        wide = float32
        words = _block(k, key, _Word(k, k.number(pair // 2)), philox.DRAW)
        shares = [_share(k, (w,), wide) for w in _pair(k, pair % 2, words)]
    radius = k.sqrt(k.mul(k.constant(-2.0, wide), k.log1p(k.neg(shares[0]))))
    angle = k.mul(shares[1], k.constant(2.0 * math.pi, wide))
    is_first = k.eq(k.number(which), k.number(ZERO))
    found = k.mul(radius, k.where(is_first, k.cos(angle), k.sin(angle)))
    return found if dtype == wide else k.cast(found, dtype)


def chosen(k: Elements, place: Place, key: Source, p: Source | None, size: Any) -> Any:
    """Return true with chance `p`, one half where that is omitted."""
    drawn = k.cast(word(k, place, key), float64)
    drawn = k.mul(drawn, k.constant(2.0**-32, float64))
    if p is None:
        return k.lt(drawn, k.constant(0.5, float64))
    return k.lt(drawn, k.cast(p(*broadcast_index(place.index, p.shape)), float64))


def dropped(
    k: Elements, place: Place, x: Source, key: Source | None, p: float, training: bool
) -> Any:
    """Return 0 with chance `p` and else the element scaled to keep the mean."""
    value = x(*place.index)
    if not training or p == 0.0 or key is None:
        return value
    if p == 1.0:
        return k.const(0.0)
    least = k.number(Dim.of(round(p * 2**32)))
    kept = k.ge(word(k, place, key), least)
    return k.where(kept, k.mul(value, k.const(1.0 / (1.0 - p))), k.const(0.0))
