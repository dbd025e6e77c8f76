"""What types constants are of."""

from __future__ import annotations

from .dims import Dim
from .expr import TensorData
from .types import STR, DTypeHole, DTypeKind, SizeType, TensorType, Type


def constant_type(value: object, ty: Type) -> Type | None:
    """Return the type a constant should have: its own if that fits, None if nothing would."""
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
