"""The precision in which composites are computed: half types are too coarse for what lies between.

Widening on the way in and narrowing on the way out costs nothing where all is one kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.types import DType, float32, is_float

if TYPE_CHECKING:
    from ..builder import Value


def wide_dtype(dtype: DType) -> DType:
    """Return float32 for a half type, and another dtype as it is."""
    return float32 if is_float(dtype) and dtype.bits < 32 else dtype


def widened(value: Value) -> Value:
    """Return a tensor of a half type as float32, and any other as it is."""
    return value.cast(wide_dtype(value.dtype))
