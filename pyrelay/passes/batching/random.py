"""Batching of random numbers: a key for each row draws what the row alone would draw.

The code of one row computes with the words of Philox, as the torch forms of the operators do
(`operators/shared/philox.py`); where only other operands are rows, every row draws the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ...ir.dims import Dim, product
from ...ir.op import Op
from ...ir.types import DType, float32, float64
from ...operators.builder import Value
from ...operators.composite.dropout import dropout
from ...operators.primitive.arithmetic import floor_divide, mod
from ...operators.primitive.compare import greater_equal, less, where
from ...operators.primitive.create import arange
from ...operators.primitive.join import stack
from ...operators.primitive.math import cos, log1p, sin, sqrt
from ...operators.primitive.parts import narrow
from ...operators.primitive.random import (
    bernoulli,
    fold_in,
    key,
    normal,
    philox_words,
    random_split,
    uniform,
)
from ...operators.shared import philox
from ...operators.shared.operands import is_given
from ...operators.tiers import Body
from .rows import RowsCall, Rule


def _philox(rows: RowsCall) -> Value:
    """Return the words of each row: the dim of the words is the last, so keys broadcast."""
    rank = max(rows.rank(0) - 1, rows.rank(1))
    return rows.emit((rows.padded(0, rank + 1), rows.padded(1, rank)))


def _counted(key: Value, count: Dim, purpose: int) -> Value:
    counters = key.builder.call(arange, (), {"end": count})
    return philox_words(key.unsqueeze(0), counters, purpose=purpose)


def _words(key: Value, count: Dim) -> Value:
    """Return as many words drawn from a key."""
    blocks = (count + 3) // 4
    every = _counted(key, blocks, philox.DRAW).reshape(blocks * 4)
    return every if blocks * 4 == count else narrow(every, dim=0, start=0, length=count)


def _shares(key: Value, count: Dim, dtype: DType) -> Value:
    """Return numbers of at least 0 and below 1."""
    bits = philox.PRECISION[dtype.name]
    if bits <= 32:
        whole = floor_divide(_words(key, count), 2 ** (32 - bits))
    else:
        pairs = _words(key, count * 2).reshape(count, 2)
        high, low = (narrow(pairs, dim=1, start=i, length=1).reshape(count) for i in (0, 1))
        whole = high * 2 ** (bits - 32) + floor_divide(low, 2 ** (64 - bits))
    return whole.cast(dtype) * 2.0**-bits


def _uniform_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    low, high, size = attrs["low"], attrs["high"], attrs["size"]
    found = _shares(args[0], product(size), attrs["dtype"] or float32).reshape(*size)
    return found if (low, high) == (0.0, 1.0) else low + (high - low) * found


def _normal_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    size, dtype = attrs["size"], attrs["dtype"] or float32
    count = product(size)
    pairs = (count + 1) // 2
    shares = _shares(args[0], pairs * 2, float64 if dtype == float64 else float32)
    shares = shares.reshape(pairs, 2)
    first, second = (narrow(shares, dim=1, start=i, length=1).reshape(pairs) for i in (0, 1))
    radius, angle = sqrt(-2.0 * log1p(-first)), second * (2.0 * math.pi)
    both = first.builder.tuple((radius * cos(angle), radius * sin(angle)))
    every = stack(both, dim=-1).reshape(pairs * 2)
    cut = every if pairs * 2 == count else narrow(every, dim=0, start=0, length=count)
    return cut.cast(dtype).reshape(*size)


def _bernoulli_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    drawn_from, p = args
    size = attrs["size"]
    if size is None:
        size = p.shape if is_given(p) else ()
    drawn = _words(drawn_from, product(size)).cast(float64) * 2.0**-32
    return less(drawn.reshape(*size), p.cast(float64) if is_given(p) else 0.5)


def _dropout_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, drawn_from = args
    p = attrs["p"]
    if not attrs["training"] or p == 0.0:
        return x
    if p == 1.0:
        return x.builder.zeros(x.ty)
    drawn = _words(drawn_from, product(x.shape)).reshape(*x.shape)
    return where(greater_equal(drawn, round(p * 2**32)), x * (1.0 / (1.0 - p)), 0.0)


def _fold_code(args: tuple[Value, ...], _: Mapping[str, Any]) -> Value:
    words = philox_words(args[0], args[1], purpose=philox.FOLD)
    return narrow(words, dim=-1, start=0, length=2)


def _split_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    words = _counted(args[0], Dim.of(attrs["num"]), philox.SPLIT)
    return narrow(words, dim=-1, start=0, length=2)


def _key_code(args: tuple[Value, ...], _: Mapping[str, Any]) -> Value:
    (seed,) = args
    halves = mod(seed, 2**32), mod(floor_divide(seed, 2**32), 2**32)
    return stack(seed.builder.tuple(halves), dim=-1)


RULES: Final[Mapping[Op, Rule]] = {philox_words: _philox}

BODIES: Final[Mapping[Op, Body]] = {
    uniform: _uniform_code,
    normal: _normal_code,
    bernoulli: _bernoulli_code,
    dropout: _dropout_code,
    fold_in: _fold_code,
    random_split: _split_code,
    key: _key_code,
}
"""Equivalent code of one row."""
