"""Patterns of a match as patterns of Python's `case`."""

from __future__ import annotations

import ast
from collections.abc import Callable
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
from . import syntax
from .file import File

_TUPLE: Final = "\ue000"
_LAST: Final = "\ue001"


def with_tuples(text: str) -> str:
    """Give the text of a program with its tuple patterns in parentheses.

    `ast.unparse` writes every sequence in brackets, which are for lists in the language. So a tuple
    pattern is a class pattern until it is text, whose name no program has: private characters are
    no part of a name, and in strings Python escapes them.
    """
    return text.replace(f", {_LAST})", ",)").replace(_TUPLE, "")


def case_pattern(file: File, pattern: Pattern, bind: Callable[[Var], str]) -> ast.pattern:
    """Give a pattern; `bind` gives a variable its name. Patterns nest only as deep as a user
    writes them. Raises CheckError."""
    match pattern:
        case Wildcard():
            return ast.MatchAs()
        case BindPattern(var, inner):
            inside = None if inner is None else case_pattern(file, inner, bind)
            return ast.MatchAs(inside, bind(var))
        case ConstructorPattern(adt, name, fields):
            inside = [case_pattern(file, f, bind) for f in fields]
            return ast.MatchClass(file.constructor(adt, name, pattern.span), inside, [], [])
        case TuplePattern(fields):
            inside = [case_pattern(file, f, bind) for f in fields]
            last = [ast.MatchAs(name=_LAST)] if len(fields) == 1 else []
            return ast.MatchClass(syntax.name(_TUPLE), [*inside, *last], [], [])
        case LiteralPattern(bool() as value):
            return ast.MatchSingleton(value)
        case LiteralPattern(int() | float() as value):
            return ast.MatchValue(syntax.number(value))
        case LiteralPattern(value):
            return ast.MatchValue(ast.Constant(value))
        case other:
            assert_never(other)
