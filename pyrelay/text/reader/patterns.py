"""Patterns of the text form. They nest only as deep as a user writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from lark import Token

from ...ir.expr import (
    BindPattern,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from . import literals as read_literals
from .context import Syntax
from .vocabulary import Vocabulary

MakeVar: TypeAlias = "Callable[[Token, Token | None, Syntax | None], Var]"
"""Return a new variable from its name, its written span and its type."""


def pattern(words: Vocabulary, tree: Syntax, make_var: MakeVar) -> Pattern:
    """Return a pattern."""
    place = words.place
    *parts, written = tree.children
    match tree.data:
        case "wildcard":
            return Wildcard(span=place.of(tree, written))
        case "pattern_var":
            return _bind(words, tree, None, make_var)
        case "as_pattern":
            inner, var = tree.children
            assert not isinstance(inner, Token)
            assert not isinstance(var, Token)
            return _bind(words, var, pattern(words, inner, make_var), make_var)
        case "tuple_pattern":
            fields = _fields(words, parts, make_var)
            return TuplePattern(fields, span=place.of(tree, written))
        case "pattern_group":
            inner = tree.children[0]
            assert not isinstance(inner, Token)
            found = pattern(words, inner, make_var)
            if words.is_relay:
                return TuplePattern((found,), span=place.of(tree))
            return found
        case "constructor_pattern":
            return _constructor(words, tree, make_var)
        case _:
            return LiteralPattern(_literal(words, parts), span=place.of(tree, written))


def _bind(words: Vocabulary, tree: Syntax, inner: Pattern | None, make_var: MakeVar) -> BindPattern:
    name, *spans, ty, own = (*tree.children, None) if len(tree.children) == 2 else tree.children
    var = make_var(name, spans[0] if spans else None, ty)  # pyright: ignore[reportArgumentType]
    return BindPattern(var, inner, span=words.place.of(tree, own))


def _constructor(words: Vocabulary, tree: Syntax, make_var: MakeVar) -> ConstructorPattern:
    first, second, inside, written = tree.children
    assert isinstance(first, Token)
    span = words.place.of(tree, written)
    if isinstance(second, Token):
        found = words.qualified(first, second, span)
    else:
        found = words.constructor(first, span)
    parts = [] if inside is None else inside.children  # pyright: ignore[reportAttributeAccessIssue]
    return ConstructorPattern(found.adt, found.name, _fields(words, parts, make_var), span=span)


def _fields(words: Vocabulary, parts: list[Any], make_var: MakeVar) -> tuple[Pattern, ...]:
    return tuple(pattern(words, part, make_var) for part in parts)


def _literal(words: Vocabulary, parts: list[Any]) -> bool | int | float | str:
    word = parts[-1]
    match word.type:
        case "NUMBER":
            return read_literals.weak(words.place, word, negative=parts[0] is not None)
        case "STRING":
            return words.place.string(word)
        case _:
            return word == "True"
