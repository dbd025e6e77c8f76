"""Reading a field that several constructors of a data type have under one name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .expr import BindPattern, Clause, ConstructorPattern, Var, Wildcard

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from .module import ConstructorDef


def all_have(constructors: Iterable[ConstructorDef], name: str) -> bool:
    """Return whether constructors of a data type all have a field of one name and one type."""
    types = {dict(zip(c.field_names, c.fields, strict=False)).get(name) for c in constructors}
    return len(types) == 1 and None not in types


def reading(adt: str, constructor: ConstructorDef, name: str, span: Span) -> Clause:
    """Return the clause of a match that gives the field of one constructor."""
    var = Var(name, span=span)
    fields = tuple(
        BindPattern(var, span=span) if n == name else Wildcard(span=span)
        for n in constructor.field_names
    )
    return Clause(ConstructorPattern(adt, constructor.name, fields, span=span), var)
