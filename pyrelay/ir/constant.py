"""Constants: their types, their values in half types, and the one that replaces a refused
expression."""

from __future__ import annotations

import math
import struct

from ..diagnostics.source import Span
from .dims import Dim
from .expr import Constant, Expr, TensorData
from .types import (
    STR,
    UNKNOWN,
    DType,
    DTypeHole,
    DTypeKind,
    SizeType,
    TensorType,
    Type,
    bfloat16,
    float16,
)


def constant_type(value: object, ty: Type) -> Type | None:
    """Return the type that a constant should have: its own if the value fits, None if no type
    does."""
    match value, ty:
        case TensorData(dtype, shape), _:
            return TensorType(tuple(Dim.of(n) for n in shape), dtype)
        case str(), _:
            return STR
        case int(), SizeType() if not isinstance(value, bool):
            return SizeType(Dim.of(value))
        case bool() | int() | float(), TensorType((), dtype) if not isinstance(dtype, DTypeHole):
            kind = {bool: DTypeKind.BOOL, int: DTypeKind.INT, float: DTypeKind.FLOAT}[type(value)]
            return ty if dtype.kind is kind else None
        case _:
            return None


def nearest(value: float, dtype: DType) -> float:
    """Return the number of a half type that is nearest to one, as torch rounds: to float32 first,
    halves to an even last bit. Numbers of other dtypes are returned as they are."""
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


def placeholder(span: Span) -> Constant:
    """Return the constant that replaces an expression in which a mistake was found, so that
    translation can go on. It has any type."""
    return Constant(0, UNKNOWN, span=span)


def is_placeholder(expr: Expr) -> bool:
    """Return whether an expression replaces one in which a mistake was found."""
    return isinstance(expr, Constant) and expr.ty == UNKNOWN
