"""The bindings of a block of a text: runs of one flavour, and nodes of Relay's graphs.

Relay's printer writes `%1 = value;` where a value is first used. The name stands for the value
everywhere after, in other branches and functions too, which compute it for themselves.
"""

from __future__ import annotations

from typing import Final, final

from ...diagnostics.source import Span
from ...ir.expr import Binding, Flavour
from .context import Syntax


@final
class Groups:
    """The bindings of one block, in runs of one flavour."""

    def __init__(self) -> None:
        self.found: Final[list[tuple[Flavour, Span, list[Binding]]]] = []
        self._is_open: bool = False

    def close(self) -> None:
        """End the run: what follows is a run of its own."""
        self._is_open = False

    def add(self, flavour: Flavour, span: Span, bindings: list[Binding]) -> None:
        """Add bindings to the run, or as a run of their own."""
        is_same = self._is_open and self.found[-1][0] is flavour
        if not is_same or flavour is Flavour.REC:
            self.found.append((flavour, span, []))
        self.found[-1][2].extend(bindings)
        self._is_open = True


@final
class Nodes:
    """The nodes of graphs read so far, and the blocks that are being read."""

    def __init__(self) -> None:
        self.blocks: Final[list[Groups]] = []
        self._values: Final[dict[str, Syntax]] = {}
        self._open: Final[set[str]] = set()

    def keep(self, name: str, value: Syntax) -> None:
        """Keep the value of a node for mentions outside of its block."""
        self._values[name] = value

    def __contains__(self, name: str) -> bool:
        """Return whether a name that nothing binds here is a node that can be read again."""
        return name in self._values and name not in self._open

    def start(self, name: str) -> Syntax:
        """Start to read a node again, whose value cannot mention the node itself."""
        self._open.add(name)
        return self._values[name]

    def end(self, name: str) -> None:
        """End to read a node again."""
        self._open.remove(name)
