"""Values that are used more than once: bound to a variable, or copied where they are literals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..diagnostics.source import Span
from ..ir.expr import Binding, Constant, Expr, Tuple, Var, is_atom
from ..ir.types import UNKNOWN


def placeholder(span: Span) -> Constant:
    """Give what stands for an expression in which a mistake was found: it has any type, and
    `infer.find_mistakes` knows it by this."""
    return Constant(0, UNKNOWN, span=span)


def is_placeholder(expr: Expr) -> bool:
    """Tell whether an expression stands for one in which a mistake was found."""
    return isinstance(expr, Constant) and expr.ty == UNKNOWN


def atom(expr: Expr, hint: str, bind: Callable[[Var, Expr], Any]) -> Expr:
    """Give an atom for a value that is used more than once or before others."""
    if is_atom(expr):
        return expr
    var = Var(hint, span=expr.span)
    bind(var, expr)
    return var


def again(value: Expr) -> Expr:
    """Give an atom for one more use: before A-normal form only variables have several parents."""
    return replace(value) if isinstance(value, Constant | Tuple) else value


def into(bindings: list[Binding]) -> Callable[[Var, Expr], None]:
    """Give what adds bindings to a list."""
    return lambda var, value: bindings.append(Binding(var, value))
