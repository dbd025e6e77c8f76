"""A Python function under construction."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum
from typing import final


class Mode(Enum):
    """The form of a unit that is being written."""

    SHALLOW = "calls nest to a known depth"
    PLAIN = "with a budget of depth as last parameter"
    STEPS = "as a generator for the trampoline"


@final
@dataclass(slots=True, eq=False)
class Frame:
    """The statements so far, and the local names read and written, which become the parameters
    of a function that is taken out of line."""

    mode: Mode
    level: int = 0
    """How many functions taken out of line are around this one."""
    statements: list[ast.stmt] = field(default_factory=list[ast.stmt])
    reads: dict[str, None] = field(default_factory=dict[str, None])
    writes: set[str] = field(default_factory=set[str])
    nesting: int = 0
    loops: int = 0
    has_yield: bool = False

    def read(self, name: str) -> None:
        """Note a use of a local name."""
        if name not in self.writes:
            self.reads.setdefault(name)

    def free(self) -> list[str]:
        """Return the local names of functions around that are used here, in order of first use.

        Code is written in the order in which it first runs, so a name read before it was written
        comes from outside, even if it is written later, as a loop's parameters are.
        """
        return list(self.reads)
