"""Philox4x32-10: a counter turned into random words, in integer arithmetic that every backend has.

After Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A word is 32 bits held
in an int64, so products of two words need no wider type: multiplication wraps, and the high half
is cut out by a shift and a mask. A draw of a given purpose differs from all others of the same
key by a number in its counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MASK: Final = 0xFFFFFFFF
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10
_CACHED: Final = 1 << 16
"""How many counters at a time stay within a CPU's cache: four times as fast as all at once."""

_FEW: Final = 16
"""Up to how many counters plain integers are faster than the calls of torch that a round takes."""

DRAW: Final = 0
"""The purpose of words that become numbers."""
FOLD: Final = 1
"""The purpose of words that become a key."""
SPLIT: Final = 2
"""The purpose of words that become several keys."""


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Return four words for four words of counter and two of key; integers or int64 tensors."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        high0, low0 = (p0 >> 32) & MASK, p0 & MASK
        high1, low1 = (p1 >> 32) & MASK, p1 & MASK
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _WEYL[0]) & MASK, (k1 + _WEYL[1]) & MASK
    return c0, c1, c2, c3


def _halves(key: Any) -> tuple[Any, Any]:
    """Return the words of a key: plain integers where reading them costs no wait for a device."""
    if key.device.type == "cpu":
        first, second = key.tolist()
        return first, second
    return key[0], key[1]


def _rounds(low: Any, high: Any, purpose: int, key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Return four words for each 64-bit counter, as `philox`, but in place: `low` and `high` are
    fresh tensors of one shape, and hold results afterwards."""
    words = [low, high, low.new_zeros(low.shape), low.new_full(low.shape, purpose)]
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0, p1 = words[0].mul_(_MULTIPLIERS[0]), words[2].mul_(_MULTIPLIERS[1])
        high0 = (p0 >> 32).bitwise_xor_(words[3]).bitwise_xor_(k1).bitwise_and_(MASK)
        high1 = (p1 >> 32).bitwise_xor_(words[1]).bitwise_xor_(k0).bitwise_and_(MASK)
        words = [high1, p1, high0, p0]  # of products the low halves count
        k0, k1 = (k0 + _WEYL[0]) & MASK, (k1 + _WEYL[1]) & MASK
    return words[0], words[1].bitwise_and_(MASK), words[2], words[3].bitwise_and_(MASK)


def _blocks(torch: Any, key: Any, places: range, purpose: int) -> tuple[Any, Any, Any, Any]:
    if key.device.type == "cpu" and len(places) <= _FEW:
        halves = _halves(key)
        rows = [philox((i & MASK, i >> 32, 0, purpose), halves) for i in places]
        return torch.tensor(rows, dtype=torch.int64).reshape(-1, 4).unbind(-1)
    counters = torch.arange(places.start, places.stop, dtype=torch.int64, device=key.device)
    return _rounds(counters & MASK, counters >> 32, purpose, _halves(key))


def words(torch: Any, key: Any, count: int) -> Any:
    """Return `count` words drawn from a key, in order."""
    return _drawn(torch, key, count, 4, lambda drawn: drawn)


def _drawn(torch: Any, key: Any, count: int, each: int, finish: Callable[[Any], Any]) -> Any:
    """Return `count` numbers that `finish` makes of words drawn from a key, `each` of the four
    words of a counter."""
    total = -(-count // each)
    step = _CACHED if key.device.type == "cpu" else max(total, 1)
    places = (range(i, min(i + step, total)) for i in range(0, max(total, 1), step))
    blocks = (_blocks(torch, key, some, DRAW) for some in places)
    parts = [finish(torch.stack(block, dim=-1).reshape(-1)) for block in blocks]
    return (parts[0] if len(parts) == 1 else torch.cat(parts))[:count]


def fold(torch: Any, key: Any, data: Any) -> Any:
    """Return the key for a number under a key."""
    if isinstance(data, torch.Tensor):
        data = data.to(torch.int64)
        if data.device.type == "cpu":
            data = data.item()
    found = philox((data & MASK, (data >> 32) & MASK, 0, FOLD), _halves(key))
    if isinstance(found[0], torch.Tensor):
        return torch.stack(found[:2], dim=-1)
    return torch.tensor(found[:2], dtype=torch.int64, device=key.device)


def split(torch: Any, key: Any, count: int) -> Any:
    """Return `count` keys made of one, as rows."""
    return torch.stack(_blocks(torch, key, range(count), SPLIT)[:2], dim=-1)


def key_of(torch: Any, device: Any, seed: int) -> Any:
    """Return the key of a seed."""
    halves = [seed & MASK, (seed >> 32) & MASK]
    return torch.tensor(halves, dtype=torch.int64, device=device)


PRECISION: Final = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""The bits of a uniform number: what its dtype holds below 1, so that rounding never gives 1."""


def uniform(torch: Any, key: Any, count: int, dtype: Any) -> Any:
    """Return `count` numbers of at least 0 and below 1, each step as likely as another."""
    bits = PRECISION[str(dtype).removeprefix("torch.")]
    return _drawn(torch, key, count, _each(bits), lambda drawn: _uniform(drawn, bits, dtype))


def _each(bits: int) -> int:
    """Return how many numbers of a precision are made of four words."""
    return 2 if bits > 32 else 4


def _uniform(drawn: Any, bits: int, dtype: Any) -> Any:
    if bits > 32:
        high, low = drawn.reshape(-1, 2).unbind(-1)
        whole = (high << (bits - 32)) | (low >> (64 - bits))
    else:
        whole = drawn >> (32 - bits)
    return whole.to(dtype) * 2.0**-bits


def normal(torch: Any, key: Any, count: int, dtype: Any) -> Any:
    """Return `count` numbers from the standard normal distribution, by Box and Muller's method."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    bits = PRECISION["float64" if wide == torch.float64 else "float32"]

    def normals(drawn: Any) -> Any:
        pairs = _uniform(drawn, bits, wide).reshape(-1, 2)
        radius = torch.sqrt(-2.0 * torch.log1p(-pairs[:, 0]))
        angle = pairs[:, 1] * (2.0 * torch.pi)
        both = torch.stack((radius * torch.cos(angle), radius * torch.sin(angle)), dim=-1)
        return both.reshape(-1).to(dtype)

    return _drawn(torch, key, count, _each(bits), normals)


def chances(torch: Any, key: Any, count: int) -> Any:
    """Return `count` numbers of at least 0 and below 1 to compare a probability with."""
    return words(torch, key, count).to(torch.float64) * 2.0**-32
