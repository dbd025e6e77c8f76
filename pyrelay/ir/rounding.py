"""Numbers as half types hold them."""

from __future__ import annotations

import math
import struct

from .types import DType, bfloat16, float16


def nearest(value: float, dtype: DType) -> float:
    """Return the number that a half type holds for one, as a tensor of it would: rounded to float32
    first, and to an even last bit from the middle of two. Other dtypes hold what they are given."""
    if dtype not in (float16, bfloat16) or not math.isfinite(value):
        return value
    try:
        single = struct.pack("<f", value)
        if dtype == float16:
            return struct.unpack("<e", struct.pack("<e", *struct.unpack("<f", single)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    (bits,) = struct.unpack("<I", single)
    kept = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", kept))[0]
