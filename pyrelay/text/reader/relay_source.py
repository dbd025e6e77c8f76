"""Relay's text made ready for the grammar: comments blanked out, the metadata section cut off.

Relay's block comments nest, which no token can say. Every character keeps its place, so spans hold.
"""

from __future__ import annotations

import re
from typing import Final

from ...diagnostics.catalogue.text import UnclosedComment
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import SourceFile, Span

_OUTSIDE: Final = re.compile(r'"[^"\n]*"|//[^\n]*|/\*|\#\[\s*metadata\s*\]')
_INSIDE: Final = re.compile(r"/\*|\*/")
_VISIBLE: Final = re.compile(r"[^\n]")


def divided(file: SourceFile) -> tuple[str, int | None]:
    """Return the program of a text, and where its metadata starts. Raises CheckError."""
    text = file.text
    parts: list[str] = []
    done = 0
    while (word := _next_word(text, done)) is not None:
        parts.append(text[done : word.start()])
        if word[0].startswith("#"):
            return "".join(parts), word.end()
        done = _end_of_comment(file, word.start()) if word[0] == "/*" else word.end()
        parts.append(_VISIBLE.sub(" ", text[word.start() : done]))
    return "".join((*parts, text[done:])), None


def _next_word(text: str, start: int) -> re.Match[str] | None:
    """Return the next comment or metadata header; strings are passed over."""
    while (word := _OUTSIDE.search(text, start)) is not None and word[0].startswith('"'):
        start = word.end()
    return word


def _end_of_comment(file: SourceFile, start: int) -> int:
    depth, end = 0, start
    while (word := _INSIDE.search(file.text, end)) is not None:
        depth += 1 if word[0] == "/*" else -1
        end = word.end()
        if depth == 0:
            return end
    raise CheckError(UnclosedComment(Span(file, start, start + 2)))
