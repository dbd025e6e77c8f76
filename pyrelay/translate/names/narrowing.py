"""Narrowing of names by tests: to a class, to not None, and away from classes.

A test of a name, or of a part of one (`x.left`, `x[0]`), makes its fields variables in the branch
where it holds, so `x.left` needs no projection there. Values do not change, so a fact about a part
stays true as long as the name stands for the same value; only the content of a cell may
change, and is no such part.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...diagnostics.source import Span
from ...ir.expr import BindPattern, ConstructorPattern, Pattern, Var, Wildcard
from ...ir.types import UNKNOWN
from ...prelude.library import OPTION
from ..data.data import DataConstructor
from ..program.context import Context
from ..program.environment import Alias, Bound
from .declared_types import field_type, may_be_none
from .known_parts import entry_of, part_of

Path: TypeAlias = tuple[str, ...]
"""A name, and the parts on the way to a part of its value."""
Facts: TypeAlias = Mapping[Path, tuple[DataConstructor, ...]]
"""The classes that values are not of."""


def value_at(cx: Context, node: ast.expr) -> Bound | None:
    """Return the variable that tests have made of a part of a name; None if there is none."""
    found = entry_of(cx, node)
    return None if found is None or (found.atom is None and found.static is None) else found


def testable(cx: Context, node: ast.expr) -> Bound | None:
    """Return the facts about the value under test, if narrowing can be recorded; None otherwise."""
    known = entry_of(cx, node)
    if known is not None:
        return known
    step = part_of(node)
    owner = None if step is None else testable(cx, step[0])
    if step is None or owner is None or owner.model is not None:
        return None
    # Where the class is known, all fields are; else `value` may be the content of a cell.
    return None if owner.parts is not None or step[1] == "value" else Bound(holder=owner.holder)


def note(cx: Context, node: ast.expr, entry: Bound) -> None:
    """Bind a name, or a part of one, to the value that a test has narrowed."""
    step = part_of(node)
    while step is not None:
        node, key = step
        owner = testable(cx, node)
        assert owner is not None
        if owner.parts is not None and key in owner.parts:
            entry = replace(owner, parts={**owner.parts, key: entry})
        else:
            entry = replace(owner, narrowed={**(owner.narrowed or {}), key: entry})
        step = part_of(node)
    assert isinstance(node, ast.Name)
    cx.env.set(node.id, entry)


def note_class(
    cx: Context,
    node: ast.expr,
    found: DataConstructor,
    fields: Sequence[Pattern],
    content: Var | None = None,
) -> None:
    """Note that a value is of a class, and which variables hold its fields; `content` is the value
    itself, where it was an optional."""
    entry = testable(cx, node)
    if entry is not None:
        known = parts(cx, found, fields, entry.holder)
        if content is not None:
            entry = Bound(atom=content, holder=entry.holder)
        note(cx, node, replace(entry, constructor=found, parts=known))


def content_of(cx: Context, node: ast.expr) -> Var | None:
    """Return a variable for the content of a declared optional that a test has narrowed to its
    content; None for any other value."""
    if not may_be_none(cx, node) or testable(cx, node) is None:
        return None
    return Var(node.id if isinstance(node, ast.Name) else "content", span=cx.span(node))


def bound_as(content: Var | None, pattern: Pattern) -> Pattern:
    """Return a pattern that binds the matched value."""
    return pattern if content is None else BindPattern(content, pattern, span=pattern.span)


def parts(
    cx: Context, found: DataConstructor, fields: Sequence[Pattern], holder: Alias | None
) -> dict[str, Bound]:
    """Return the variables that a pattern has bound to the fields of a value of a class."""
    return {
        name: Bound(atom=field.var, holder=holder, declared=field_type(cx, found, name))
        for name, field in zip(found.field_names, fields, strict=True)
        if isinstance(field, BindPattern)
    }


def note_not(cx: Context, node: ast.expr, classes: Sequence[DataConstructor]) -> None:
    """Note that a value is of none of these classes."""
    entry = testable(cx, node)
    if entry is not None:
        note(cx, node, replace(entry, excluded=(*entry.excluded, *classes)))


def not_of(cx: Context, entry: Bound) -> tuple[DataConstructor, ...]:
    """Return the classes that tests have excluded for a value."""
    if entry.constructor is None:
        return entry.excluded
    union = cx.program.data.members(entry.constructor)
    return tuple(c for c in union if c != entry.constructor)


def facts_of(cx: Context, name: str, entry: Bound) -> Facts:
    """Return the known classes of a name and of its parts."""
    found: dict[Path, tuple[DataConstructor, ...]] = {}
    pending: list[tuple[Path, Bound]] = [((name,), entry)]
    while pending:
        path, known = pending.pop()
        others = not_of(cx, known)
        if others:
            found[path] = others
        inside = {**(known.parts or {}), **(known.narrowed or {})}
        pending += (((*path, key), part) for key, part in inside.items())
    return found


def both(left: Facts, right: Facts) -> Facts:
    """Return the facts that hold in both of two cases."""
    found: dict[Path, tuple[DataConstructor, ...]] = {}
    for path, classes in left.items():
        shared = tuple(c for c in classes if c in right.get(path, ()))
        if shared:
            found[path] = shared
    return found


def node_of(path: Path, place: ast.expr) -> ast.expr:
    """Return the expression that a path is, as if it stood at a place."""
    found: ast.expr = ast.Name(path[0], ast.Load())
    for key in path[1:]:
        if key.startswith("["):
            found = ast.Subscript(found, ast.Constant(int(key[1:-1])), ast.Load())
        else:
            found = ast.Attribute(found, key, ast.Load())
    for node in ast.walk(found):
        ast.copy_location(node, place)
    return found


def classes_left(cx: Context, node: ast.expr) -> tuple[DataConstructor, ...]:
    """Return the classes of its union that a value may be of, where tests have excluded others;
    none where no test has. A value that is declared as an optional may be None, too."""
    entry = entry_of(cx, node)
    if entry is None or not entry.excluded or may_be_none(cx, node):
        return ()
    union = cx.program.data.members(entry.excluded[0])
    return tuple(c for c in union if c not in entry.excluded)


def only_class(cx: Context, node: ast.expr) -> DataConstructor | None:
    """Return the class of a value of which tests have excluded all others of its union."""
    left = classes_left(cx, node)
    return left[0] if len(left) == 1 else None


def fields_bound(found: DataConstructor, span: Span) -> tuple[Pattern, ...]:
    """Return a pattern for each field of a class, which binds it under its own name."""
    return tuple(BindPattern(Var(n, span=span), span=span) for n in found.field_names)


def of_class(
    found: DataConstructor, span: Span, fields: tuple[Pattern, ...] | None = None
) -> ConstructorPattern:
    """Return the pattern for the values of a class."""
    if fields is None:
        fields = tuple(Wildcard(span=span) for _ in found.field_names)
    return ConstructorPattern(found.adt, found.name, fields, span=span)


def shared_params(names: Sequence[str], span: Span) -> tuple[Var, ...]:
    """Return the parameters of a function that is called from several places. They are marked as
    inferred, so that inference does not take it for a function to copy for each call."""
    return tuple(Var(n, UNKNOWN, span=span) for n in names)


def some(pattern: Pattern, span: Span) -> ConstructorPattern:
    """Return the pattern for an optional that is not None."""
    return ConstructorPattern(OPTION, "Some", (pattern,), span=span)


def none(span: Span) -> ConstructorPattern:
    """Return the pattern for None."""
    return ConstructorPattern(OPTION, "None", (), span=span)


def is_some(pattern: Pattern) -> bool:
    """Return whether a pattern is that of an optional that is not None."""
    return _is_optional(pattern, "Some")


def is_none(pattern: Pattern) -> bool:
    """Return whether a pattern is that of None."""
    return _is_optional(pattern, "None")


def _is_optional(pattern: Pattern, name: str) -> bool:
    match pattern:
        case ConstructorPattern(adt, found):
            return adt == OPTION and found == name
        case _:
            return False
