"""Lists of tuples: where `Sequence[T]` is wanted, a tuple of values that are each a `T` will do.

As for optionals, a tuple becomes a list where it flows into one, never by unification. The empty
tuple stays None.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...diagnostics.source import Span
from ...ir.expr import Call, Constructor, Expr
from ...ir.types import AdtType, FnType, TupleType, Type
from ...prelude.library import LIST, element_of


def flowing_parts(
    actual: Type, expected: Type, *, lists: bool
) -> Sequence[tuple[Type, Type]] | None:
    """Return the types of the parts of a value, each with the one that it flows into; None for
    values without such parts. With `lists` a tuple may become a list."""
    match actual, expected:
        case TupleType(a), TupleType(b) if len(a) == len(b):
            return list(zip(a, b, strict=True))
        case FnType(a, r), FnType(b, s) if len(a) == len(b):
            return list(zip((*b, r), (*a, s), strict=True))
        case TupleType((_, *_) as a), AdtType() if lists:
            element = element_of(expected)
            return None if element is None else [(field, element) for field in a]
        case _:
            return None


def as_list(elements: Sequence[Expr], element: Type, span: Span) -> Expr:
    """Return typed values of one type as a list."""
    ty = AdtType(LIST, (element,))
    nil = Constructor(LIST, "Nil", FnType((), ty), span=span)
    cons = Constructor(LIST, "Cons", FnType((element, ty), ty), span=span)
    found: Expr = Call(nil, (), type_args=(element,), ty=ty, span=span)
    for value in reversed(elements):
        found = Call(cons, (value, found), type_args=(element,), ty=ty, span=span)
    return found
