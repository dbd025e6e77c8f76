"""Optionals: where `T | None` is wanted, a `T` will do, and so will None.

None is unit until it meets an optional. A value becomes an optional where it flows into one, never
by unification, so `Option[Int]` and `Int` stay different types.
"""

from __future__ import annotations

from ...diagnostics.source import Span
from ...ir.expr import Binding, Call, Constructor, Expr, Tuple, Var, type_of
from ...ir.traverse import let
from ...ir.types import UNIT, AdtType, FnType, Type, TypeHole
from ...prelude.library import OPTION, inner_of


def joined_optional(left: Type, right: Type) -> Type | None:
    """Return the optional that two values, of which one may be None, have in common; None where
    neither is optional."""
    for one, other in ((left, right), (right, left)):
        if inner_of(one) is not None:
            return one if inner_of(other) is None else None
    for one, other in ((left, right), (right, left)):
        if one == UNIT and other != UNIT and not isinstance(other, TypeHole):
            return AdtType(OPTION, (other,))
    return None


def as_optional(expr: Expr, inner: Type, span: Span) -> Expr:
    """Return a typed value, or None, as an optional of a type."""
    wanted = AdtType(OPTION, (inner,))
    if type_of(expr) != UNIT:
        some = Constructor(OPTION, "Some", FnType((inner,), wanted), span=span)
        return Call(some, (expr,), type_args=(inner,), ty=wanted, span=span)
    maker = Constructor(OPTION, "None", FnType((), wanted), span=span)
    none = Call(maker, (), type_args=(inner,), ty=wanted, span=span)
    if isinstance(expr, Tuple | Var):
        return none
    # What computes None may print, fail or write first.
    return let([Binding(Var("nothing", UNIT, span=span), expr)], none)
