"""Text as IR: what `printer.to_text` writes, and what people write by hand.

Beyond the printer's output the parser takes comments (`// ...`, `/* ... */`), infix arithmetic and
comparisons (`%n - 1 < 3`), `e1; e2` for a value that is thrown away, nested calls, omitted operands
and `grad(@f)`. The grammar is `grammar.lark`; lark builds a tree without recursion, and `text/`
turns it into IR. Mistakes are `CheckError`s at their place in the text.

Expressions may nest as deep as memory lasts; types and patterns are walked by plain recursion, here
and in every pass, so their depth has a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias, final

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ..diagnostics.catalogue.text import BadLiteral, NestedTooDeep, UnexpectedText
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


DEEPEST: Final = 100
"""How deep types, attributes and patterns may nest."""
LONGEST: Final = 1000
"""How many characters a number may have."""

_TERMS: Final = frozenset(
    ("of", "called", "ref_type", "fn_type", "term_tuple", "term_group", "term_list", "arithmetic")
)
_PATTERNS: Final = frozenset(
    ("tuple_pattern", "pattern_group", "constructor_pattern", "as_pattern")
)
_NESTING: Final = _TERMS | _PATTERNS
_BETWEEN: Final = frozenset(("terms", "patterns", "attribute"))
_NUMBERS: Final = frozenset(("NUMBER", "PROJECTION", "HOLE", "SPAN"))


def check_limits(place: TextContext, tree: Syntax) -> None:
    """Stop at what exceeds a limit. Raises CheckError."""
    pending: list[tuple[Syntax, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if node.data in _NESTING:
            depth += 1
            if depth > DEEPEST:
                raise CheckError(NestedTooDeep(place.of(node), DEEPEST))
        elif node.data not in _BETWEEN:
            depth = 0
        for child in node.children:
            if not isinstance(child, Token):
                if child is not None:
                    pending.append((child, depth))
            elif len(child) > LONGEST and child.type in _NUMBERS:
                why = f"a number has at most {LONGEST} characters"
                raise CheckError(BadLiteral(place.of(child), f"{child[:8]}...", why))


Build: TypeAlias = "Callable[[list[Any]], Any]"
"""Maps the results of the parts of a rule to the result of the rule."""


@final
class PositionedLark(Lark):
    """A parser whose trees have `meta.start_pos` and `meta.end_pos`."""

    def _prepare_callbacks(self) -> None:
        super()._prepare_callbacks()
        words = {terminal.name for terminal in self.terminals}
        for rule, build in self._callbacks.items():
            if rule not in words:
                self._callbacks[rule] = _positioned(build)


def _positioned(build: Build) -> Build:
    """Return a callback that builds the same tree, with its place in the text."""

    def positioned(parts: list[Any]) -> Any:
        made = build(parts)
        if isinstance(made, Tree) and made.meta.empty:
            first, last = _position(parts), _position(reversed(parts))
            if first is not None and last is not None:
                made.meta.start_pos, made.meta.end_pos = first.start_pos, last.end_pos
                made.meta.empty = False
        return made

    return positioned


def _position(parts: Iterable[Any]) -> Any:
    """Return the first part that has words, or its meta data: both have positions."""
    for part in parts:
        if isinstance(part, Token):
            return part
        if isinstance(part, Tree) and not part.meta.empty:
            return part.meta
    return None
