"""Where the nodes of a JSON document stand in its text, for messages about damaged ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ..diagnostics.source import SourceFile, Span

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def syntax_place(file: SourceFile, error: ValueError | RecursionError) -> Span:
    """Return the place where a text stops being JSON."""
    at = error.pos if isinstance(error, json.JSONDecodeError) else 0
    return Span(file, at, min(at + 1, len(file.text)))


def node_place(file: SourceFile, index: int) -> Span:
    """Return the place of a node of a document, or its beginning if there is no such node."""
    text = file.text
    nodes = next((at for key, at in _members(text) if key == "nodes"), len(text))
    if text[nodes : nodes + 1] == "[":
        for number, (start, end) in enumerate(_elements(text, nodes)):
            if number == index:
                return Span(file, start, end)
    return Span(file, 0, min(1, len(text)))


def _members(text: str) -> Iterator[tuple[Any, int]]:
    """Return the keys of the object that a text is, with the places of their values."""
    at = _skip(text, 0)
    while text[at : at + 1] in ("{", ","):
        at = _skip(text, at + 1)
        if text[at : at + 1] == "}":
            return
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        yield key, at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Return the places of the elements of the array that begins at a place."""
    while text[at : at + 1] in ("[", ","):
        start = _skip(text, at + 1)
        if text[start : start + 1] == "]":
            return
        at = _DECODER.raw_decode(text, start)[1]
        yield start, at
        at = _skip(text, at)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
