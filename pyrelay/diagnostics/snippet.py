"""The labelled lines of one source file, as rustc and ariadne draw them.

A label within one line is underlined, its text beside the underline or hanging below it; a label
over several lines is a bar in a lane left of the source. Lines far from every label are elided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ..dataclass import dataclass
from .layout import Displayed, Line, Piece, Role, displayed, text_width

if TYPE_CHECKING:
    from .mistake import Label
    from .source import SourceFile

_WHOLE_SPAN: Final = 6
"""A label over at most this many lines shows all of them."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A label in display columns, from 0; `end` is exclusive, on line `last`."""

    first: int
    start: int
    last: int
    end: int
    text: str
    role: Role

    @property
    def stroke(self) -> str:
        return "^" if self.role is Role.PRIMARY else "-"

    @property
    def is_multiline(self) -> bool:
        return self.first != self.last


@dataclass(frozen=True, slots=True)
class _Snippet:
    file: SourceFile
    marks: tuple[_Mark, ...]
    lanes: tuple[_Mark, ...]
    gutter: int

    def line(self, number: int) -> list[Line]:
        """Return a source line and everything drawn below it."""
        shown = displayed(self.file.line(number))
        head = [Piece(f"{number:>{self.gutter}} | ", Role.GUTTER)]
        rows: list[Line] = [(*head, *self._lanes(number, shown), Piece(shown.text, Role.SOURCE))]
        inline = [m for m in self.marks if m.first == number and not m.is_multiline]
        rows += [self._below(number, row) for row in _underlines(inline)]
        for mark in self.lanes:
            if mark.first == number and not _opens_line(mark, shown):
                rows.append(self._connector(number, mark, is_end=False))
        for mark in reversed(self.lanes):
            if mark.last == number:
                rows.append(self._connector(number, mark, is_end=True))
        return rows

    def elision(self, after: int) -> Line:
        """Return the row that stands for the lines left out after `after`."""
        open_lanes = self._lanes(after + 1, displayed(""), source=False)
        dots = Piece(f"{'...':<{self.gutter + 3}}", Role.GUTTER)
        return (dots, *open_lanes)

    def _lanes(self, number: int, shown: Displayed, *, source: bool = True) -> Iterable[Piece]:
        """Return the lanes left of a line: a bar inside a mark, a slash where it opens the line."""
        for mark in self.lanes:
            if mark.first < number <= mark.last:
                yield Piece("| ", mark.role)
            elif source and mark.first == number and _opens_line(mark, shown):
                yield Piece("/ ", mark.role)
            else:
                yield Piece("  ", mark.role)

    def _below(self, number: int, row: Line) -> Line:
        """Return a row below line `number`: the gutter and the lanes that are still open."""
        shown = displayed(self.file.line(number))
        lanes = [
            m.first < number <= m.last or (m.first == number and _opens_line(m, shown))
            for m in self.lanes
        ]
        bars = [
            Piece("| " if is_open else "  ", m.role)
            for m, is_open in zip(self.lanes, lanes, strict=True)
        ]
        return (Piece(f"{'':>{self.gutter}} | ", Role.GUTTER), *bars, *row)

    def _connector(self, number: int, mark: _Mark, *, is_end: bool) -> Line:
        """Return the row that joins a mark's lane to its start or end in the line above."""
        index = self.lanes.index(mark)
        pieces = [Piece(f"{'':>{self.gutter}} | ", Role.GUTTER)]
        pieces += [
            Piece("| " if lane.first <= number <= lane.last else "  ", lane.role)
            for lane in self.lanes[:index]
        ]
        column = mark.end - 1 if is_end else mark.start
        width = 2 * (len(self.lanes) - index) - 1 + max(column, 0)
        pieces.append(Piece(("|" if is_end else " ") + "_" * width + mark.stroke, mark.role))
        if is_end and mark.text:
            pieces.append(Piece(" " + " ".join(mark.text.splitlines()), mark.role))
        return tuple(pieces)


def snippet(file: SourceFile, labels: Sequence[tuple[Label, Role]], gutter: int) -> list[Line]:
    """Return the lines of a file that its labels touch, with the labels drawn in."""
    marks = tuple(_mark(label, role) for label, role in labels)
    lanes = tuple(sorted((m for m in marks if m.is_multiline), key=lambda m: (m.first, -m.last)))
    drawing = _Snippet(file, marks, lanes, gutter)
    rows: list[Line] = []
    previous = 0
    for number in _shown_lines(marks):
        if previous and number == previous + 2:
            rows += drawing.line(previous + 1)
        elif previous and number > previous + 1:
            rows.append(drawing.elision(previous))
        rows += drawing.line(number)
        previous = number
    return rows


def last_line(labels: Iterable[Label]) -> int:
    """Return the largest line number that labels touch."""
    return max((_extent(label)[1][0] for label in labels), default=0)


def _shown_lines(marks: Iterable[_Mark]) -> list[int]:
    lines: set[int] = set()
    for mark in marks:
        if mark.last - mark.first < _WHOLE_SPAN:
            lines.update(range(mark.first, mark.last + 1))
        else:
            lines.update((mark.first, mark.first + 1, mark.last))
    return sorted(lines)


def _extent(label: Label) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the first and the last position of a label, the last exclusive, columns from 1.

    A line end at the end of the span belongs to the line that it ends.
    """
    span = label.span
    text = span.file.text
    end = span.end
    while end > span.start + 1 and text[end - 1 : end] in ("\n", "\r"):
        end -= 1
    first = span.file.position(span.start)
    if end <= span.start:
        return first, (first[0], first[1] + 1)
    last_line, last_column = span.file.position(end - 1)
    return first, (last_line, last_column + 1)


def _mark(label: Label, role: Role) -> _Mark:
    (first, start), (last, end) = _extent(label)
    file = label.span.file
    above = displayed(file.line(first))
    below = above if first == last else displayed(file.line(last))
    start_column = above.column(start - 1)
    end_column = below.column(end - 1)
    if first == last:
        end_column = max(end_column, start_column + 1)
    return _Mark(first, start_column, last, end_column, label.text, role)


def _opens_line(mark: _Mark, shown: Displayed) -> bool:
    """Return whether nothing but blanks stands before the mark's start."""
    return not shown.text[: mark.start].strip()


def _underlines(marks: Sequence[_Mark]) -> list[Line]:
    """Return the rows below a line for the marks within it: underlines, then hanging texts."""
    if not marks:
        return []
    ordered = sorted(marks, key=lambda m: (m.start, m.end, m.role is Role.PRIMARY))
    beside = _beside(ordered)
    canvas = _Canvas()
    # A short underline stays visible on top of a long one.
    for mark in sorted(ordered, key=lambda m: (m.start - m.end, m.role is Role.PRIMARY)):
        canvas.put(0, mark.start, mark.stroke * (mark.end - mark.start), mark.role)
    row = 0
    if beside is not None:
        column = max(m.end for m in ordered) + 1
        for row, text in enumerate(beside.text.splitlines()):
            canvas.put(row, column, text, beside.role)
    _hang([m for m in ordered if m is not beside and m.text], canvas, row + 1)
    return canvas.lines()


def _hang(marks: Sequence[_Mark], canvas: _Canvas, row: int) -> None:
    """Draw texts below each other from right to left, each under a stem from its underline."""
    for mark in marks:
        canvas.put(row, mark.start, "|", mark.role)
    for mark in reversed(marks):
        for text in mark.text.splitlines():
            row += 1
            canvas.put(row, mark.start, text, mark.role)
            for left in marks:
                if left.start < mark.start:
                    canvas.put(row, left.start, "|", left.role)


def _beside(ordered: Sequence[_Mark]) -> _Mark | None:
    """Return the mark whose text stands beside the underlines: the last, if it also ends last."""
    last = ordered[-1]
    if not last.text or any(m.end > last.end for m in ordered):
        return None
    if len(ordered) > 1 and len(last.text.splitlines()) > 1:
        return None
    return last


class _Canvas:
    """Rows of characters with roles, on which later strokes cover earlier ones."""

    def __init__(self) -> None:
        self._rows: Final[list[list[Piece]]] = []

    def put(self, row: int, column: int, text: str, role: Role) -> None:
        """Draw text at a display column. A wide character takes a cell and an empty one."""
        while len(self._rows) <= row:
            self._rows.append([])
        cells = self._rows[row]
        while len(cells) < column + text_width(text):
            cells.append(Piece(" ", Role.GUTTER))
        for char in text:
            width = text_width(char)
            if width == 0 and column > 0:
                cells[column - 1] = Piece(cells[column - 1].text + char, role)
                continue
            cells[column] = Piece(char, role)
            for extra in range(1, width):
                cells[column + extra] = Piece("", role)
            column += width

    def lines(self) -> list[Line]:
        """Return the rows, neighbours of one role joined."""
        return [_joined(cells) for cells in self._rows]


def _joined(cells: Iterable[Piece]) -> Line:
    pieces: list[Piece] = []
    for cell in cells:
        if pieces and pieces[-1].role is cell.role:
            pieces[-1] = Piece(pieces[-1].text + cell.text, cell.role)
        else:
            pieces.append(cell)
    return tuple(pieces)
