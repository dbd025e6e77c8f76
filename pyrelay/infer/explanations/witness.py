"""A case that a match leaves out, written as the user would write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from keyword import iskeyword
from typing import Final, assert_never

from ...ir.expr import (
    BindPattern,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.module import AdtDef
from ...ir.traverse import Steps, run
from ...prelude.library import LIST, OPTION

DEEPEST: Final = 12
"""How many patterns inside each other are written out."""


def with_names(pattern: Pattern, adts: Mapping[str, AdtDef]) -> Pattern:
    """Return a pattern that gives what it takes of fields their names, each name once."""
    taken: set[str] = set()

    def named(part: Pattern, depth: int) -> Pattern:
        match part:
            case TuplePattern(fields) if depth <= DEEPEST:
                return replace(part, fields=tuple(named(f, depth + 1) for f in fields))
            case ConstructorPattern(adt, name, fields) if depth <= DEEPEST:
                names = adts[adt].constructor(name).field_names or ("",) * len(fields)
                pairs = zip(fields, names, strict=True)
                inside = (_field(f, n) if _is_open(f) else named(f, depth + 1) for f, n in pairs)
                return replace(part, fields=tuple(inside))
            case _:
                return part

    def _field(part: Pattern, name: str) -> Pattern:
        if not name.isidentifier() or iskeyword(name) or name in taken:
            return part
        taken.add(name)
        return BindPattern(Var(name, span=part.span), span=part.span)

    return named(pattern, 0)


def _is_open(pattern: Pattern) -> bool:
    return isinstance(pattern, Wildcard)


def case_text(pattern: Pattern, *, is_python: bool) -> str:
    """Return a pattern without names in Python's syntax, or in that of the text form."""
    return run(_text(pattern, is_python, 0))


def _text(pattern: Pattern, is_python: bool, depth: int) -> Steps[str]:
    if depth > DEEPEST:
        return "..."
    match pattern:
        case Wildcard():
            return "_"
        case BindPattern(var, None):
            return var.name
        case BindPattern(inner=inner):
            assert inner is not None
            return (yield _text(inner, is_python, depth))
        case LiteralPattern(value):
            return repr(value)
        case TuplePattern(fields):
            inside = yield _each(fields, is_python, depth)
            return f"({inside},)" if len(fields) == 1 else f"({inside})"
        case ConstructorPattern(adt, name, fields) if is_python and adt in (LIST, OPTION):
            return (yield _of_prelude(name, fields, depth))
        case ConstructorPattern(name=name, fields=fields):
            inside = yield _each(fields, is_python, depth)
            return f"{name}({inside})" if fields or is_python else name
        case other:
            assert_never(other)


def _of_prelude(name: str, fields: Sequence[Pattern], depth: int) -> Steps[str]:
    """Return the pattern of a list, or of an optional, as Python writes it."""
    elements: list[str] = []
    while name == "Cons":
        first, rest = fields
        elements.append((yield _text(first, True, depth + 1)))
        if not isinstance(rest, ConstructorPattern):
            return f"[{', '.join((*elements, '*_'))}]"
        name, fields = rest.name, rest.fields
    match name:
        case "Some":
            return (yield _text(fields[0], True, depth))
        case "None":
            return "None"
        case _:
            return f"[{', '.join(elements)}]"


def _each(fields: Sequence[Pattern], is_python: bool, depth: int) -> Steps[str]:
    texts: list[str] = []
    for field in fields:
        texts.append((yield _text(field, is_python, depth + 1)))  # noqa: PERF401
    return ", ".join(texts)
