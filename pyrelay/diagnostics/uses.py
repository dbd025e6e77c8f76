"""Where in a call of the user's a named argument stands."""

from __future__ import annotations

import re
from typing import Final

from .source import Span

_PIECES: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?P<open>[(\[{])|(?P<close>[)\]}])'
    r"|(?P<comma>,)|(?P<name>\w+)\s*=(?!=)|\w+|\W",
    re.DOTALL,
)


def argument_place(name: str, call: Span) -> tuple[Span, Span] | None:
    """Return the places of the name and the value of a named argument in the text of a call; None
    where it has none, or the call is not written as one."""
    depth, found = 0, None
    for piece in _PIECES.finditer(call.text):
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        if depth == 1 and piece["name"] == name:
            found = piece
        ends = depth == 0 if piece["close"] else depth == 1 and piece["comma"]
        if found is not None and ends:
            start = call.start + found.start()
            value = call.start + found.end(), call.start + piece.start()
            return Span(call.file, start, start + len(name)), _trimmed(Span(call.file, *value))
        if piece["close"] and depth == 0:
            return None
    return None


def _trimmed(span: Span) -> Span:
    """Return a place without the space around its text."""
    text = span.text
    start = span.start + len(text) - len(text.lstrip())
    return Span(span.file, start, start + len(text.strip()))
