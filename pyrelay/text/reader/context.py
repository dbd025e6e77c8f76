"""Where the parts of a text stand: spans of syntax trees, and mistakes at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, final

from lark import Token, Tree

from ...dataclass import dataclass
from ...diagnostics.catalogue.text import BadLiteral, BadMetadata, UnknownSource
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import SourceFile, Span
from ..dialect import Dialect
from ..lexis import read_name, read_string
from .metadata import Metadata, Unreadable

T = TypeVar("T")
Syntax: TypeAlias = "Tree[Token]"
"""A node of the tree that lark builds: `data` is the rule, `children` are in grammar order."""

_SPAN: Final = re.compile(r'@\[(\d+):(\d+):(\d+)(?: (".*"))?\]', re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class TextContext:
    """The file that is being read, its language, the sources that written spans refer to, and the
    metadata that its constants are in."""

    file: SourceFile
    dialect: Dialect
    sources: Mapping[int, SourceFile]
    metadata: Metadata

    def of(self, item: Syntax | Token, written: Any = None) -> Span:
        """Return the span of a part of the text: the written one, if a span token is given."""
        here = self._of_text(item)
        if written is None:
            return here
        match = _SPAN.fullmatch(written)
        assert match is not None
        number = int(match[1])
        if number not in self.sources:
            raise CheckError(UnknownSource(self._of_text(written), number))
        because = read_string(match[4]) if match[4] else ""
        return Span(self.sources[number], int(match[2]), int(match[3]), because)

    def name(self, token: Token) -> str:
        """Return the name that a word stands for, without its `%`, `@` or `'`."""
        word = token[1:] if token.type in {"VAR", "GLOBAL", "TYPE_VARIABLE"} else str(token)
        try:
            return read_name(word)
        except ValueError as error:
            raise self._no_escape(token) from error

    def string(self, token: Token) -> str:
        """Return the value of a string literal."""
        if not self.dialect.escapes:
            return str(token)[1:-1]
        try:
            return read_string(token)
        except ValueError as error:
            raise self._no_escape(token) from error

    def from_metadata(self, tree: Syntax, ask: Callable[[Metadata, str, int], T]) -> T:
        """Return the constant that `meta[key][number]` names."""
        key, number = tree.children[:2]
        try:
            return ask(self.metadata, str(key)[len("meta[") : -1], int(str(number)))
        except (Unreadable, ValueError) as error:
            span = self.of(tree)
            raise CheckError(BadMetadata(span, span.text, str(error))) from error

    def _no_escape(self, token: Token) -> CheckError:
        return CheckError(BadLiteral(self._of_text(token), str(token), "an escape without meaning"))

    def _of_text(self, item: Syntax | Token) -> Span:
        where = item if isinstance(item, Token) else item.meta
        start, end = where.start_pos, where.end_pos
        assert start is not None, "a rule without words has no place"
        assert end is not None
        return Span(self.file, start, end)


def word_of(tree: Syntax) -> Token:
    """Return the word that a rule starts with."""
    word = tree.children[0]
    assert isinstance(word, Token)
    return word


def tree_of(child: Syntax | Token | None) -> Syntax:
    """Return a part of a rule that must be a rule itself."""
    assert isinstance(child, Tree)
    return child


def trees_of(tree: Syntax) -> list[Syntax]:
    """Return the parts of a rule that are rules themselves."""
    return [c for c in tree.children if isinstance(c, Tree)]
