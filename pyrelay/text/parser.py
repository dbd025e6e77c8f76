"""Text as IR: what `printer.to_text` writes, and what people write by hand.

Beyond the printer's output the parser takes comments (`// ...`, `/* ... */`), infix arithmetic and
comparisons (`%n - 1 < 3`), `e1; e2` for a value that is thrown away, nested calls, omitted operands
and `grad(@f)`. The grammar is `grammar.lark`; lark builds a tree without recursion, and `text/`
turns it into IR. Mistakes are `CheckError`s at their place in the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ..diagnostics.catalogue.text import UnexpectedText
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import SourceFile, Span
from ..garbage import uncollected
from ..ir.expr import Expr
from ..ir.linking import Library
from ..ir.module import EMPTY, Module
from ..ir.op import Op
from ..operators.table import BY_NAME
from ..relay05.imported import Imported
from ..relay05.table import SUPPORTED
from .dialect import RELAY, Dialect, dialect_of
from .limits import check_limits
from .positioned import PositionedLark
from .reader.alone import as_module
from .reader.context import Syntax, TextContext
from .reader.metadata import Metadata
from .reader.module import ParsedText, read_expr, read_module
from .reader.relay_source import divided

_WORDS: Final = {
    "VAR": "a variable `%x`",
    "GLOBAL": "a function `@f`",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "SPAN": "",
    "HOLE": "",
    "META": "",
    "TYPE_VARIABLE": "a type",
    "PROJECTION": "a field `.0`",
    "COMPARE": "a comparison",
    "EQUAL": "`==`",
    "TRUE": "`True`",
    "FALSE": "`False`",
    "NONE": "`None`",
    "$END": "the end of the text",
}
"""The names of terminals in messages; fixed words are shown as they are."""

NOTHING: Final = Library(lambda: EMPTY)
"""A library without anything."""

_NO_EXPRESSION: Final = frozenset({"NAME", "GLOBAL", "STRING", "$END"})
"""Tokens that a text of one expression starts with only where they name the function of a call."""
_AN_EXPRESSION: Final = frozenset({"VAR", "GLOBAL", "NAME", "NUMBER", "STRING", "LPAR", "LBRACE"})


def parse_module(
    text: str,
    name: str = "<text>",
    *,
    operators: Mapping[str, Op] = BY_NAME,
    sources: Mapping[str, SourceFile] | None = None,
    library: Library = NOTHING,
) -> Module:
    """Return the module that a text describes. Raises CheckError.

    A text with the header `#[version = "0.0.5"]` is Relay's: its numbers, operators and rules hold.
    A text that is one expression is a module whose `main` it is.

    Args:
        text: The program.
        name: The name of the text in messages.
        operators: The operators that a text of our own may call, by name.
        sources: The files, by name, that spans written in the text point into. A file not given
            stands in a span by its name alone.
        library: Functions and data types that the text may use without defining them.

    >>> module = parse_module("def @twice(%x: float32) { add(%x, %x) }")
    >>> list(module.functions)
    ['twice']
    """
    file = SourceFile(name, text)
    with uncollected():
        parsed = _parsed(file, "module", dialect_of(text), operators, library)
        return read_module(parsed, sources or {})


def parse_expr(text: str, *, operators: Mapping[str, Op] = BY_NAME, relay: bool = False) -> Expr:
    """Return the expression of a text. Raises CheckError.

    With `relay`, or under its header, the text is read as Relay's. Free variables are declared in
    front: `free_var %x: float32; add(%x, %x)`.
    """
    file = SourceFile("<text>", text)
    dialect = RELAY if relay else dialect_of(text)
    with uncollected():
        parsed = _parsed(file, "open_expr", dialect, operators, NOTHING)
        return read_expr(parsed)


@cache
def _lark(words: str) -> Lark:
    files = resources.files(__spec__.parent)
    parts = [files.joinpath(name).read_text("utf-8") for name in ("grammar.lark", words)]
    return PositionedLark(
        "\n".join(parts), parser="lalr", start=["module", "open_expr"], maybe_placeholders=True
    )


def _parsed(
    file: SourceFile, start: str, dialect: Dialect, operators: Mapping[str, Op], library: Library
) -> ParsedText:
    text, metadata = file.text, None
    known: Mapping[str, Op | Imported] = operators
    if dialect is RELAY:
        text, metadata = divided(file)
        known = SUPPORTED
    parser = _lark(dialect.words)
    try:
        tree = _tree(parser, text, start)
    except UnexpectedInput as error:
        raise CheckError(_mistake(file, error, parser)) from None
    section = None if metadata is None else file.text[metadata:]
    place = TextContext(file, dialect, {}, Metadata(section))
    check_limits(place, tree)
    return ParsedText(tree, place, known, library)


def _tree(parser: Lark, text: str, start: str) -> Syntax:
    """Return the tree of a text; of one expression, where a module is wanted, that of the module
    that it stands for. Raises UnexpectedInput."""
    try:
        tree = parser.parse(text, start=start)
    except UnexpectedToken as error:
        if start != "module" or "DEF" not in error.expected or not _starts_expression(error, text):
            raise
        try:
            tree = parser.parse(text, start="open_expr")
        except UnexpectedInput as inside:
            is_further = (inside.pos_in_stream or 0) > (error.pos_in_stream or 0)
            raise (inside if is_further else error) from None
        assert isinstance(tree, Tree)
        return as_module(tree)
    assert isinstance(tree, Tree)
    return tree


def _starts_expression(error: UnexpectedToken, text: str) -> bool:
    """Return whether a text that is no module may be one expression: a name starts one as the
    function of a call."""
    token = error.token
    if token.type not in _NO_EXPRESSION:
        return True
    is_name = token.type in {"NAME", "GLOBAL"} and token.end_pos is not None
    return is_name and text[token.end_pos :].lstrip().startswith("(")


def _mistake(file: SourceFile, error: UnexpectedInput, parser: Lark) -> UnexpectedText:
    if isinstance(error, UnexpectedToken):
        token = error.token
        expected = _named(set(error.accepts or error.expected), parser)
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
    return UnexpectedText(Span(file, start, start + 1), f"`{found}`", _named(error.allowed, parser))


def _named(terminals: set[str], parser: Lark) -> tuple[str, ...]:
    """Return the names, for a message, of what could stand somewhere."""
    names: set[str] = set()
    if terminals >= _AN_EXPRESSION:
        names.add("an expression")
        terminals = {"RPAR", "RBRACE", "SEMICOLON", "COMMA"} & terminals
    patterns = {t.name: t.pattern for t in parser.terminals}
    for terminal in terminals:
        known = _WORDS.get(terminal)
        names.add(f"`{patterns[terminal].value}`" if known is None else known)
    return tuple(sorted(names - {""}))
