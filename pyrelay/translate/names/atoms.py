"""Values that are used more than once: bound to a variable, or copied where they are literals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...ir.expr import Binding, Constant, Expr, Tuple, Var, is_atom


def atom(expr: Expr, hint: str, bind: Callable[[Var, Expr], Any]) -> Expr:
    """Return an atom for a value that is used more than once or before others."""
    if is_atom(expr):
        return expr
    var = Var(hint, span=expr.span)
    bind(var, expr)
    return var


def again(value: Expr) -> Expr:
    """Return an atom for one more use: before A-normal form only variables have several parents."""
    return replace(value) if isinstance(value, Constant | Tuple) else value


def into(bindings: list[Binding]) -> Callable[[Var, Expr], None]:
    """Return the function that adds bindings to a list."""
    return lambda var, value: bindings.append(Binding(var, value))
