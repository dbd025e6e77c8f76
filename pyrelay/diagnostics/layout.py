"""The pieces that rendered diagnostics consist of, and how wide their characters are.

`snippet.py` and `render.py` build lines of pieces; a piece is text with the role it plays, so plain
text, terminal colours and HTML are three readings of one layout.
"""

from __future__ import annotations

import unicodedata
from enum import Enum, auto
from typing import Final, TypeAlias

from ..dataclass import dataclass

_TAB: Final = 4


class Role(Enum):
    """The role of a piece of a rendered diagnostic, which decides its colour."""

    ERROR = auto()
    WARNING = auto()
    TITLE = auto()
    GUTTER = auto()
    SOURCE = auto()
    PRIMARY = auto()
    SECONDARY = auto()
    NOTE = auto()
    HELP = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of one line, and its role."""

    text: str
    role: Role


Line: TypeAlias = tuple[Piece, ...]


def plain(lines: list[Line]) -> str:
    """Return lines of pieces as text, without trailing blanks."""
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


@dataclass(frozen=True, slots=True)
class Displayed:
    """A source line as it is shown, and the display column of each of its characters.

    `columns` has one entry more than the line has characters: where the line ends.
    """

    text: str
    columns: tuple[int, ...]

    def column(self, index: int) -> int:
        """Return the display column of character `index`; past the end, each counts one."""
        if index < len(self.columns):
            return self.columns[index]
        return self.columns[-1] + index - len(self.columns) + 1


def displayed(line: str) -> Displayed:
    """Return a source line with tabs expanded and unprintable characters replaced."""
    if line.isascii() and line.isprintable():
        return Displayed(line, tuple(range(len(line) + 1)))
    shown: list[str] = []
    columns = [0]
    for char in line:
        if char == "\t":
            width = _TAB - columns[-1] % _TAB
            shown.append(" " * width)
        else:
            width = _width(char)
            shown.append(char if char.isprintable() or width == 0 else "\N{REPLACEMENT CHARACTER}")
        columns.append(columns[-1] + width)
    return Displayed("".join(shown), tuple(columns))


def text_width(text: str) -> int:
    """Return the number of terminal columns that a text without tabs takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    """Return the number of terminal columns of a character."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
