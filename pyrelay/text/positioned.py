"""The parser that lark makes of a grammar, whose trees have positions in the text and no more.

Lark's own propagation finds lines, columns and the extents of parts that a tree leaves out too,
which takes as long as the rest of parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, final

from lark import Lark, Token, Tree

Build: TypeAlias = "Callable[[list[Any]], Any]"
"""From what the parts of a rule became to what the rule becomes."""


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
