"""Patterns of a match as patterns of Python's `case`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final, assert_never

from ..ir.expr import (
    BindPattern,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from ..ir.traverse import takes_all
from ..prelude.library import OPTION
from . import syntax
from .file import File

_TUPLE: Final = "\ue000"
_LAST: Final = "\ue001"


def takes_none(pattern: Pattern) -> bool:
    """Return whether a pattern is the one for None."""
    return isinstance(pattern, ConstructorPattern) and (pattern.adt, pattern.name) == (
        OPTION,
        "None",
    )


def with_tuples(text: str) -> str:
    """Return the text of a program with its tuple patterns in parentheses.

    `ast.unparse` writes every sequence in brackets, which are for lists in the language. So a tuple
    pattern is a class pattern until it is text, whose name no program has: private characters are
    no part of a name, and in strings Python escapes them.
    """
    return text.replace(f", {_LAST})", ",)").replace(_TUPLE, "")


def case_pattern(
    file: File, pattern: Pattern, bind: Callable[[Var], str], *, is_there: bool = False
) -> ast.pattern:
    """Return a pattern; `bind` gives a variable its name, `is_there` is whether an earlier case has
    taken None. Patterns nest only as deep as a user writes them."""
    match pattern:
        case Wildcard():
            return ast.MatchAs()
        case BindPattern(var, inner):
            inside = None if inner is None else case_pattern(file, inner, bind)
            return ast.MatchAs(inside, bind(var))
        case ConstructorPattern(adt, "None", ()) if adt == OPTION:
            return ast.MatchSingleton(None)
        case ConstructorPattern(adt, "Some", (inner,)) if adt == OPTION:
            inside = case_pattern(file, inner, bind)
            # A pattern of the value alone would take None too.
            if (takes_all(inner) and not is_there) or _is_optional(inner):
                return ast.MatchClass(file.use("Some"), [inside], [], [])
            return inside
        case ConstructorPattern(adt, name, fields):
            inside = [case_pattern(file, f, bind) for f in fields]
            return ast.MatchClass(file.constructor(adt, name), inside, [], [])
        case TuplePattern(fields):
            inside = [case_pattern(file, f, bind) for f in fields]
            last = [ast.MatchAs(name=_LAST)] if len(fields) == 1 else []
            return ast.MatchClass(syntax.name(_TUPLE), [*inside, *last], [], [])
        case LiteralPattern(value):
            return _literal(value)
        case other:
            assert_never(other)


def _is_optional(pattern: Pattern) -> bool:
    while isinstance(pattern, BindPattern) and pattern.inner is not None:
        pattern = pattern.inner
    return isinstance(pattern, ConstructorPattern) and pattern.adt == OPTION


def _literal(value: bool | float | str) -> ast.pattern:
    if isinstance(value, bool):
        return ast.MatchSingleton(value)
    literal = ast.Constant(value) if isinstance(value, str) else syntax.number(value)
    return ast.MatchValue(literal)
