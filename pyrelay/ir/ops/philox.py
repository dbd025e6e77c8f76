"""Philox4x32-10: a counter turned into random words, in integer arithmetic that every backend has.

After Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A word is 32 bits held
in an int64, so products of two words need no wider type: multiplication wraps, and the high half
is cut out by a shift and a mask. A draw of a given purpose differs from all others of the same
key by a number in its counter.
"""

from __future__ import annotations

from typing import Any, Final

MASK: Final = 0xFFFFFFFF
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10

DRAW: Final = 0
"""The purpose of words that become numbers."""
FOLD: Final = 1
"""The purpose of words that become a key."""
SPLIT: Final = 2
"""The purpose of words that become several keys."""


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Give four words for four words of counter and two of key; integers or int64 tensors."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        high0, low0 = (p0 >> 32) & MASK, p0 & MASK
        high1, low1 = (p1 >> 32) & MASK, p1 & MASK
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _WEYL[0]) & MASK, (k1 + _WEYL[1]) & MASK
    return c0, c1, c2, c3


def words(torch: Any, key: Any, count: int) -> Any:
    """Give `count` words drawn from a key, in order."""
    blocks = torch.arange((count + 3) // 4, dtype=torch.int64, device=key.device)
    four = philox((blocks & MASK, blocks >> 32, 0, DRAW), (key[0], key[1]))
    return torch.stack(torch.broadcast_tensors(*four), dim=-1).reshape(-1)[:count]


def fold(torch: Any, key: Any, data: Any) -> Any:
    """Give the key for a number under a key."""
    if not isinstance(data, torch.Tensor):
        data = torch.tensor(data, dtype=torch.int64, device=key.device)
    data = data.to(torch.int64)
    found = philox((data & MASK, (data >> 32) & MASK, 0, FOLD), (key[0], key[1]))
    return torch.stack(found[:2], dim=-1)


def split(torch: Any, key: Any, count: int) -> Any:
    """Give `count` keys made of one, as rows."""
    places = torch.arange(count, dtype=torch.int64, device=key.device)
    found = philox((places & MASK, places >> 32, 0, SPLIT), (key[0], key[1]))
    return torch.stack(found[:2], dim=-1)


def key_of(torch: Any, device: Any, seed: int) -> Any:
    """Give the key of a seed."""
    halves = [seed & MASK, (seed >> 32) & MASK]
    return torch.tensor(halves, dtype=torch.int64, device=device)


_PRECISION: Final = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""The bits of a uniform number: what its dtype holds below 1, so that rounding never gives 1."""


def uniform(torch: Any, key: Any, count: int, dtype: Any) -> Any:
    """Give `count` numbers of at least 0 and below 1, each step as likely as another."""
    bits = _PRECISION[str(dtype).removeprefix("torch.")]
    if bits > 32:
        high, low = words(torch, key, 2 * count).reshape(-1, 2).unbind(-1)
        whole = (high << (bits - 32)) | (low >> (64 - bits))
    else:
        whole = words(torch, key, count) >> (32 - bits)
    return whole.to(dtype) * 2.0**-bits


def normal(torch: Any, key: Any, count: int, dtype: Any) -> Any:
    """Give `count` numbers from the standard normal distribution, by Box and Muller's method."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    pairs = uniform(torch, key, count + count % 2, wide).reshape(-1, 2)
    radius = torch.sqrt(-2.0 * torch.log1p(-pairs[:, 0]))
    angle = pairs[:, 1] * (2.0 * torch.pi)
    both = torch.stack((radius * torch.cos(angle), radius * torch.sin(angle)), dim=-1)
    return both.reshape(-1)[:count].to(dtype)


def chances(torch: Any, key: Any, count: int) -> Any:
    """Give `count` numbers of at least 0 and below 1 to compare a probability with."""
    return words(torch, key, count).to(torch.float64) * 2.0**-32
