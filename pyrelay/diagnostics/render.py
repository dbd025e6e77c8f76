"""Diagnostics as text: what `str(error)`, logs and test runners show.

`lay_out` gives lines of pieces; `render_text` reads them as plain text and needs nothing outside
the standard library. `colour.py` reads the same pieces for terminals and notebooks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .layout import Line, Piece, Role, plain
from .mistake import Diagnostic, Fix, Label, Severity
from .snippet import last_line, snippet

if TYPE_CHECKING:
    from .source import SourceFile

SHOWN: Final = 5
"""How many diagnostics are shown of one error; the rest are counted."""


def render_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Return diagnostics as plain text, a blank line between two."""
    return plain(lay_out(diagnostics))


def lay_out(diagnostics: Sequence[Diagnostic], limit: int | None = SHOWN) -> list[Line]:
    """Return the lines of diagnostics; of more than `limit` the rest is only counted."""
    lines: list[Line] = []
    for diagnostic in diagnostics[:limit]:
        if lines:
            lines.append(())
        lines += _one(diagnostic)
    hidden = 0 if limit is None else len(diagnostics) - limit
    if hidden > 0:
        lines += [(), (Piece(f"... and {hidden} more", Role.TITLE),)]
    return lines


def file_name(file: SourceFile) -> str:
    """Return a file's name as shown: `In[3]`, or relative to the current directory when inside
    it."""
    cell = _cell(file.name)
    if cell is not None:
        return cell
    if not os.path.isabs(file.name):  # noqa: PTH117  names of notebook cells are no paths
        return file.name
    try:
        return str(Path(file.name).relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):
        return file.name


def _cell(name: str) -> str | None:
    """Return IPython's name for one of its cells, whose file is a name that IPython made up."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return None
    found = shell.compile.format_code_name(name)
    return None if found is None else str(found[1])


def _one(diagnostic: Diagnostic) -> list[Line]:
    is_error = diagnostic.severity is Severity.ERROR
    head = Role.ERROR if is_error else Role.WARNING
    name = diagnostic.severity.value
    lines: list[Line] = [
        (Piece(f"{name}[{diagnostic.code}]", head), Piece(f": {diagnostic.title}", Role.TITLE))
    ]
    labels = _labels(diagnostic)
    gutter = max(1, len(str(last_line(label for label, _ in labels))))
    bar: Line = (Piece(f"{'':>{gutter}} |", Role.GUTTER),)
    for index, (file, here) in enumerate(_by_file(labels)):
        arrow = "-->" if index == 0 else ":::"
        line, column = file.position(here[0][0].span.start)
        place = f"{'':>{gutter}}{arrow} {file_name(file)}:{line}:{column}"
        lines += [(Piece(place, Role.GUTTER),), bar, *snippet(file, here, gutter)]
    remarks = list(_remarks(diagnostic))
    if remarks and labels:
        lines.append(bar)
    for word, text, role in remarks:
        lines += _remark(word, text, role, gutter)
    return lines


def _labels(diagnostic: Diagnostic) -> list[tuple[Label, Role]]:
    """Return the labels that stand in a text, the primary first."""
    found = [] if diagnostic.primary is None else [(diagnostic.primary, Role.PRIMARY)]
    found += [(label, Role.SECONDARY) for label in diagnostic.secondary]
    return [(label, role) for label, role in found if label.span.file.text]


def _by_file(
    labels: Iterable[tuple[Label, Role]],
) -> list[tuple[SourceFile, list[tuple[Label, Role]]]]:
    """Return the labels file by file, in order of first mention."""
    groups: list[tuple[SourceFile, list[tuple[Label, Role]]]] = []
    for label, role in labels:
        for file, group in groups:
            if file is label.span.file or (file.name, file.text) == (
                label.span.file.name,
                label.span.file.text,
            ):
                group.append((label, role))
                break
        else:
            groups.append((label.span.file, [(label, role)]))
    return groups


def _remarks(diagnostic: Diagnostic) -> Iterable[tuple[str, str, Role]]:
    """Return the lines below the source: notes, then the help."""
    primary = diagnostic.primary
    if primary is not None and not primary.span.file.text and primary.text:
        yield "note", primary.text, Role.NOTE
    if primary is not None and primary.span.because:
        yield "note", f"found in derived code: {primary.span.because}", Role.NOTE
    for note in diagnostic.notes:
        yield "note", note, Role.NOTE
    if diagnostic.help is not None:
        yield "help", diagnostic.help, Role.HELP
    elif isinstance(diagnostic.fix, Fix):
        yield "help", f"write `{diagnostic.fix.replacement.strip()}`", Role.HELP


def _remark(word: str, text: str, role: Role, gutter: int) -> list[Line]:
    """Return a note or help; further lines of its text stand below its first."""
    first, *more = text.splitlines() or [""]
    head = f"{'':>{gutter}} = "
    lines: list[Line] = [
        (Piece(head, Role.GUTTER), Piece(f"{word}: ", role), Piece(first, Role.TITLE))
    ]
    indent = " " * (len(head) + len(word) + 2)
    lines += [(Piece(indent + line, Role.TITLE),) for line in more]
    return lines
