"""Source files and spans: where in the user's text a node comes from.

A span holds character offsets into a file; lines and columns are computed only when something is
printed. `ast` counts columns in UTF-8 bytes, so every conversion from `ast` goes through
`SourceFile.span_of_ast`, the one place that knows.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from dataclasses import field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ..dataclass import dataclass

if TYPE_CHECKING:
    import ast


class Construct(Enum):
    """The construct that a node stands for, where it is none of its own class."""

    LOOP = "a loop or comprehension"
    CASE = "a case with alternatives"
    OPENED = "`*xs` in a display"
    ITEM = "`xs[i]` of a list"
    NEVER = "`assert_never(x)`"


class SourceFile:
    """A named text. Two files are the same only if they are the same object."""

    def __init__(self, name: str, text: str, *, is_python: bool = False) -> None:
        self.name: Final = name
        self.text: Final = text
        self.is_python: Final = is_python
        """Whether programs in it are Python, so messages about them are in terms of Python."""

    def __repr__(self) -> str:
        return f"SourceFile({self.name!r})"

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        # Python's own line ends: `str.splitlines` also splits at form feeds and Unicode separators.
        for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", self.text):
            starts.append(starts[-1] + len(line))
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both from 1, of a character offset."""
        line = bisect.bisect_right(self._line_starts, offset)
        line = min(line, max(1, len(self._line_starts) - 1))
        return line, offset - self._line_starts[line - 1] + 1

    def byte_position(self, offset: int) -> tuple[int, int]:
        """Return the line (from 1) and the UTF-8 byte column (from 0) of a character offset."""
        line, column = self.position(offset)
        before = self.text[offset - column + 1 : offset]
        return line, column - 1 if before.isascii() else len(before.encode())

    def line(self, number: int) -> str:
        """Return the text of line `number` (from 1) without its line end; empty if there is
        none."""
        if not 1 <= number < len(self._line_starts):
            return ""
        return self.text[self._line_starts[number - 1] : self._line_starts[number]].rstrip("\r\n")

    def offset(self, line: int, byte_column: int) -> int:
        """Return the character offset of a line (from 1) and a UTF-8 byte column (from 0)."""
        start = self._line_starts[min(line, len(self._line_starts)) - 1]
        text = self.text[start:].split("\n", 1)[0] if line >= len(self._line_starts) else ""
        text = text or self.line(line)
        if text.isascii():
            return start + byte_column
        return start + len(text.encode()[:byte_column].decode(errors="replace"))

    def span_of_ast(self, node: ast.expr | ast.stmt | ast.arg | ast.pattern | ast.keyword) -> Span:
        """Return the span of an `ast` node that was parsed from this whole file."""
        end_line = node.lineno if node.end_lineno is None else node.end_lineno
        end_column = node.col_offset if node.end_col_offset is None else node.end_col_offset
        return Span(
            self, self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)
        )


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters in a file, and what is known of the node that stands there."""

    file: SourceFile
    start: int
    end: int
    because: str = field(default="", compare=False)
    """For derived code the reason it exists."""
    construct: Construct | None = field(default=None, compare=False)
    """For desugared code the construct it stands for."""
    uses: tuple[tuple[str, Span], ...] = field(default=(), compare=False)
    """Where the names are written that are operands of the node, or results of its branches: the
    span of a variable is where it is bound."""

    def derived(self, because: str) -> Span:
        """Return the same place with a reason, such as `gradient of`, for generated code."""
        if self.because:
            return self
        return Span(self.file, self.start, self.end, because, self.construct, self.uses)

    def desugared(self, construct: Construct) -> Span:
        """Return the same place for a node that stands for a construct."""
        return replace(self, construct=construct)

    def using(self, uses: Iterable[tuple[str, Span]]) -> Span:
        """Return the same place with the places of the names used there, in order."""
        return replace(self, uses=tuple(uses)) if uses else self

    def use(self, name: str, *, last: bool = False) -> Span | None:
        """Return the first or last place where a name is used here; None if it is not, as far as
        is known."""
        places = reversed(self.uses) if last else self.uses
        return next((place for used, place in places if used == name), None)

    def to(self, other: Span) -> Span:
        """Return the range from the start of this span to the end of `other`."""
        return Span(self.file, self.start, max(self.end, other.end), self.because)

    @property
    def line(self) -> int:
        """The line, from 1, on which the span starts."""
        return self.file.position(self.start)[0]

    @property
    def text(self) -> str:
        """The characters of the span."""
        return self.file.text[self.start : self.end]

    def __str__(self) -> str:
        line, column = self.file.position(self.start)
        return f"{self.file.name}:{line}:{column}"

    def __repr__(self) -> str:
        return f"<{self}>"


BUILTIN: Final = SourceFile("<pyrelay>", "")
"""The file of code that no user wrote, such as IR that a program builds by hand."""

NOWHERE: Final = Span(BUILTIN, 0, 0)
"""The span of code that no user wrote."""
