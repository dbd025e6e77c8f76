"""What stands for an expression that translation refused, so that the rest can be looked at."""

from __future__ import annotations

from ..diagnostics.source import Span
from .expr import Constant, Expr
from .types import UNKNOWN


def placeholder(span: Span) -> Constant:
    """Return what stands for an expression in which a mistake was found: it has any type."""
    return Constant(0, UNKNOWN, span=span)


def is_placeholder(expr: Expr) -> bool:
    """Return whether an expression stands for one in which a mistake was found."""
    return isinstance(expr, Constant) and expr.ty == UNKNOWN
