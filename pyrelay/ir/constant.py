"""Types of constants, and the constant that replaces a refused expression."""

from __future__ import annotations

from ..diagnostics.source import Span
from .dims import Dim
from .expr import Constant, Expr, TensorData
from .types import STR, UNKNOWN, DTypeHole, DTypeKind, SizeType, TensorType, Type


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


def placeholder(span: Span) -> Constant:
    """Return the constant that replaces an expression in which a mistake was found, so that
    translation can go on. It has any type."""
    return Constant(0, UNKNOWN, span=span)


def is_placeholder(expr: Expr) -> bool:
    """Return whether an expression replaces one in which a mistake was found."""
    return isinstance(expr, Constant) and expr.ty == UNKNOWN
