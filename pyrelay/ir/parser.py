"""Text as IR: what `printer.to_text` writes, and what people write by hand.

Beyond the printer's output the parser takes comments (`// ...`, `/* ... */`), infix arithmetic and
comparisons (`%n - 1 < 3`), `e1; e2` for a value that is thrown away, nested calls, omitted operands
and `grad(@f)`. The grammar is `grammar.lark`; lark builds a tree without recursion, and `text/`
turns it into IR. Mistakes are `CheckError`s at their place in the text.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Final

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ..diagnostics.catalogue.text import UnexpectedText
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import SourceFile, Span
from .expr import Expr
from .module import Module
from .op import Op
from .ops.table import BY_NAME
from .text.place import Syntax
from .text.read_module import read_expr, read_module

_WORDS: Final = {
    "VAR": "a variable `%x`",
    "GLOBAL": "a function `@f`",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "SPAN": "",
    "HOLE": "",
    "TYPE_VARIABLE": "a type",
    "PROJECTION": "a field `.0`",
    "COMPARE": "a comparison",
    "EQUAL": "`==`",
    "TRUE": "`True`",
    "FALSE": "`False`",
    "NONE": "`None`",
    "$END": "the end of the text",
}
"""What a terminal is called in a message; those that are fixed words are shown as they are."""

_AN_EXPRESSION: Final = frozenset({"VAR", "GLOBAL", "NAME", "NUMBER", "STRING", "LPAR", "LBRACE"})


def parse_module(
    text: str,
    name: str = "<text>",
    *,
    operators: Mapping[str, Op] = BY_NAME,
    sources: Mapping[str, SourceFile] | None = None,
) -> Module:
    """Give the module that a text describes. Raises CheckError.

    Args:
        text: The program.
        name: The name of the text in messages.
        operators: The operators that the text may call, by name.
        sources: The files, by name, that spans written in the text point into. A file not given
            stands in a span by its name alone.

    >>> module = parse_module("def @twice(%x: float32) { add(%x, %x) }")
    >>> list(module.functions)
    ['twice']
    """
    file = SourceFile(name, text)
    with _collector_paused():
        return read_module(_parsed(file, "module"), file, operators, sources or {})


def parse_expr(
    text: str,
    name: str = "<text>",
    *,
    operators: Mapping[str, Op] = BY_NAME,
    typed: bool = False,
) -> Expr:
    """Give the expression of a text; `typed` where types left out are implied. Raises CheckError.

    Free variables are declared in front: `free_var %x: float32; add(%x, %x)`.
    """
    file = SourceFile(name, text)
    with _collector_paused():
        return read_expr(_parsed(file, "open_expr"), file, operators, typed=typed)


@contextmanager
def _collector_paused() -> Generator[None]:
    """Keep the garbage collector from looking again and again at a tree that is all in use, which
    takes more than half of the time of reading a long text."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@cache
def _lark() -> Lark:
    grammar = resources.files(__spec__.parent).joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        parser="lalr",
        start=["module", "open_expr"],
        maybe_placeholders=True,
        propagate_positions=True,
    )


def _parsed(file: SourceFile, start: str) -> Syntax:
    try:
        tree = _lark().parse(file.text, start=start)
    except UnexpectedInput as error:
        raise CheckError(_mistake(file, error)) from None
    assert isinstance(tree, Tree)
    return tree


def _mistake(file: SourceFile, error: UnexpectedInput) -> UnexpectedText:
    if isinstance(error, UnexpectedToken):
        token = error.token
        expected = _named(set(error.accepts or error.expected))
        if token.type == "$END":
            end = len(file.text.rstrip())
            return UnexpectedText(Span(file, end, end), "the end of the text", expected)
        assert isinstance(token, Token)
        assert token.start_pos is not None
        return UnexpectedText(
            Span(file, token.start_pos, token.start_pos + len(token)), f"`{token}`", expected
        )
    assert isinstance(error, UnexpectedCharacters)
    start = error.pos_in_stream
    found = file.text[start : start + 1]
    return UnexpectedText(Span(file, start, start + 1), f"`{found}`", _named(error.allowed))


def _named(terminals: set[str]) -> tuple[str, ...]:
    """Give the names, for a message, of what could stand somewhere."""
    names: set[str] = set()
    if terminals >= _AN_EXPRESSION:
        names.add("an expression")
        terminals = {"RPAR", "RBRACE", "SEMICOLON", "COMMA"} & terminals
    patterns = {t.name: t.pattern for t in _lark().terminals}
    for terminal in terminals:
        known = _WORDS.get(terminal)
        names.add(f"`{patterns[terminal].value}`" if known is None else known)
    return tuple(sorted(names - {""}))
