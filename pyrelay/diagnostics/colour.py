"""Diagnostics in colour, for terminals and notebooks: the only file that imports rich.

It reads the pieces that `render.py` lays out, so a coloured rendering has the same characters as
the plain one. `NO_COLOR` and terminals without colours are rich's business.
"""

from __future__ import annotations

import io
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.text import Text

from .frames import of_users
from .layout import Line, Role
from .render import SHOWN, lay_out

if TYPE_CHECKING:
    from .mistake import Diagnostic

_STYLES: Final = {
    Role.ERROR: "bold red",
    Role.WARNING: "bold yellow",
    Role.TITLE: "bold",
    Role.GUTTER: "blue",
    Role.SOURCE: "",
    Role.PRIMARY: "bold red",
    Role.SECONDARY: "cyan",
    Role.NOTE: "cyan",
    Role.HELP: "green",
}

_NOTEBOOK: Final = '<pre style="white-space:pre;overflow-x:auto;line-height:1.3">{code}</pre>'


def print_coloured(
    diagnostics: Sequence[Diagnostic], file: TextIO, limit: int | None = SHOWN
) -> None:
    """Write diagnostics to a stream, in colour where the stream is a terminal."""
    console = Console(file=file, highlight=False, soft_wrap=True)
    console.print(_text(lay_out(diagnostics, limit)))


def render_ansi(diagnostics: Sequence[Diagnostic]) -> str:
    """Return diagnostics as text with terminal colour codes, as IPython shows tracebacks."""
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(_text(lay_out(diagnostics)), soft_wrap=True)
    return capture.get().rstrip("\n")


def render_html(diagnostics: Sequence[Diagnostic]) -> str:
    """Return diagnostics as an HTML fragment, as notebooks show values."""
    console = Console(file=io.StringIO(), record=True, force_terminal=True)
    console.print(_text(lay_out(diagnostics)), soft_wrap=True)
    return console.export_html(inline_styles=True, code_format=_NOTEBOOK)


def render_traceback(error: Exception, diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return the calls in the user's files that led to an error, then the error, for IPython."""
    frames = traceback.extract_tb(error.__traceback__)
    kept = of_users(frames)
    theirs = [f for f in kept if "IPython" not in Path(f.filename).parts]
    lines = [f"{type(error).__name__}"]
    lines += [line.rstrip("\n") for line in traceback.format_list(theirs)]
    lines.append(render_ansi(diagnostics))
    if len(kept) < len(frames):
        lines.append("(pyrelay's own frames are hidden; `traceback.print_exception` shows them)")
    return lines


def _text(lines: list[Line]) -> Text:
    rows = [Text.assemble(*((piece.text, _STYLES[piece.role]) for piece in line)) for line in lines]
    for row in rows:
        row.rstrip()
    return Text("\n").join(rows)
