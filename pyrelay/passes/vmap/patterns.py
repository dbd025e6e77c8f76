"""Patterns: whether the elements of a batch may differ in what fits them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Wildcard,
)
from ...ir.types import AdtType, TupleType, Type
from .masks import MIXED, Mask, is_any

if TYPE_CHECKING:
    from .forms import Forms


def tests_batched(pattern: Pattern, ty: Type, mask: Mask, forms: Forms) -> bool:
    """Return whether elements may differ in whether a value fits a pattern."""
    match pattern:
        case LiteralPattern():
            return is_any(mask)
        case BindPattern(_, inner):
            return inner is not None and tests_batched(inner, ty, mask, forms)
        case TuplePattern(fields):
            assert isinstance(ty, TupleType)
            assert isinstance(mask, tuple)
            parts = zip(fields, ty.fields, mask, strict=True)
            return any(tests_batched(p, t, m, forms) for p, t, m in parts)
        case ConstructorPattern(_, name, fields):
            assert isinstance(ty, AdtType)
            if mask is MIXED:
                return True
            types = forms.fields(ty, name)
            choose = forms.full if is_any(mask) else forms.none
            parts = zip(fields, types, strict=True)
            return any(tests_batched(p, t, choose(t), forms) for p, t in parts)
        case Wildcard():
            return False


def is_irrefutable(pattern: Pattern, is_only: Callable[[str], bool]) -> bool:
    """Return whether every value fits a pattern."""
    match pattern:
        case Wildcard():
            return True
        case BindPattern(_, inner):
            return inner is None or is_irrefutable(inner, is_only)
        case TuplePattern(fields):
            return all(is_irrefutable(f, is_only) for f in fields)
        case ConstructorPattern(adt, _, fields):
            return is_only(adt) and all(is_irrefutable(f, is_only) for f in fields)
        case LiteralPattern():
            return False


def exclude_each_other(clauses: Sequence[Clause], is_only: Callable[[str], bool]) -> bool:
    """Return whether a value fits one clause at most, by its constructor alone."""
    names: set[str] = set()
    for clause in clauses:
        match clause.pattern:
            case ConstructorPattern(_, name, fields) if clause.guard is None:
                if name in names or not all(is_irrefutable(f, is_only) for f in fields):
                    return False
                names.add(name)
            case _:
                return False
    return True
