"""What tests tell of names: the class of a value, that it is not None, and what it is not.

A test of a name, or of a field of a name whose class is known, makes its fields variables in the
branch where it holds, so `x.left` needs no projection there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..diagnostics.source import Span
from ..ir.expr import BindPattern, ConstructorPattern, Pattern, Var, Wildcard
from ..ir.types import UNKNOWN
from ..prelude.library import OPTION
from .context import Context
from .data import DataConstructor
from .environment import Bound, Holder


def entry_of(cx: Context, node: ast.expr) -> Bound | None:
    """Give what is known of a name, or of a field of one whose class is known; None if nothing."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    found = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    for field in reversed(path):
        if not isinstance(found, Bound) or found.parts is None:
            return None
        found = found.parts.get(field)
    return found if isinstance(found, Bound) else None


def note(cx: Context, node: ast.expr, entry: Bound) -> None:
    """Make a name, or a field of one, stand for what a test has told."""
    while isinstance(node, ast.Attribute):
        owner = entry_of(cx, node.value)
        assert owner is not None
        entry = replace(owner, parts={**(owner.parts or {}), node.attr: entry})
        node = node.value
    assert isinstance(node, ast.Name)
    cx.env.set(node.id, entry)


def note_class(
    cx: Context, node: ast.expr, found: DataConstructor, fields: Sequence[Pattern]
) -> None:
    """Note that a value is of a class, and which variables hold its fields."""
    entry = entry_of(cx, node)
    if entry is not None:
        note(cx, node, replace(entry, parts=parts(found, fields, entry.holder)))


def parts(
    found: DataConstructor, fields: Sequence[Pattern], holder: Holder | None
) -> dict[str, Bound]:
    """Give what the fields of a value of a class stand for, which a pattern has bound."""
    return {
        name: Bound(atom=field.var, holder=holder)
        for name, field in zip(found.field_names, fields, strict=True)
        if isinstance(field, BindPattern)
    }


def note_not(cx: Context, node: ast.expr, classes: Sequence[DataConstructor]) -> None:
    """Note that a value is of none of these classes."""
    entry = entry_of(cx, node)
    if entry is not None:
        note(cx, node, replace(entry, excluded=(*entry.excluded, *classes)))


def only_class(cx: Context, node: ast.expr) -> DataConstructor | None:
    """Give the class of a value of which tests have excluded all others of its union."""
    entry = entry_of(cx, node)
    if entry is None or not entry.excluded:
        return None
    union = cx.program.data.members(entry.excluded[0])
    left = [c for c in union if c not in entry.excluded]
    return left[0] if len(left) == 1 else None


def fields_bound(found: DataConstructor, span: Span) -> tuple[Pattern, ...]:
    """Give a pattern for each field of a class, which binds it under its own name."""
    return tuple(BindPattern(Var(n, span=span), span=span) for n in found.field_names)


def of_class(
    found: DataConstructor, span: Span, fields: tuple[Pattern, ...] | None = None
) -> ConstructorPattern:
    """Give the pattern for the values of a class."""
    if fields is None:
        fields = tuple(Wildcard(span=span) for _ in found.field_names)
    return ConstructorPattern(found.adt, found.name, fields, span=span)


def shared_params(names: Sequence[str], span: Span) -> tuple[Var, ...]:
    """Give the parameters of a function that is called from several places. They are marked as
    inferred, so that inference does not take it for a function to copy for each call."""
    return tuple(Var(n, UNKNOWN, span=span) for n in names)


def some(pattern: Pattern, span: Span) -> ConstructorPattern:
    """Give the pattern for an optional that is not None."""
    return ConstructorPattern(OPTION, "Some", (pattern,), span=span)


def none(span: Span) -> ConstructorPattern:
    """Give the pattern for None."""
    return ConstructorPattern(OPTION, "None", (), span=span)


def is_some(pattern: Pattern) -> bool:
    """Tell whether a pattern is that of an optional that is not None."""
    return _is_optional(pattern, "Some")


def is_none(pattern: Pattern) -> bool:
    """Tell whether a pattern is that of None."""
    return _is_optional(pattern, "None")


def _is_optional(pattern: Pattern, name: str) -> bool:
    match pattern:
        case ConstructorPattern(adt, found):
            return adt == OPTION and found == name
        case _:
            return False
