"""A Python function under construction: its statements and its local names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...lower_torch.code import Code
from .names import Identifiers

Make: TypeAlias = Callable[..., ast.expr]
"""From operands to an expression."""


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


class Statements:
    """Writes the statements of a Python function."""

    def __init__(self, names: Identifiers, code: Code) -> None:
        self.names: Final = names
        self.code: Final = code
        """The maker of syntax nodes."""
        self.frame: Frame = Frame(Mode.SHALLOW)

    def load(self, name: str) -> ast.expr:
        """Return the value of a local name."""
        self.frame.read(name)
        return self.code.name(name)

    def emit(self, statement: ast.stmt) -> None:
        """Add a statement."""
        self.frame.statements.append(statement)

    def assign(self, name: str, value: ast.expr) -> None:
        """Add an assignment to a local name."""
        self.frame.writes.add(name)
        self.emit(self.code.assign(name, value))

    def give(self, name: str | None, value: ast.expr) -> None:
        """Add an assignment, or if there is no name the bare expression."""
        if name is None:
            self.evaluate(value)
        else:
            self.assign(name, value)

    def evaluate(self, value: ast.expr) -> None:
        """Add an expression for its effect, if it can have one."""
        is_unit = isinstance(value, ast.Tuple) and not value.elts
        if not isinstance(value, ast.Name | ast.Constant) and not is_unit:
            self.emit(self.code.evaluate(value))

    def bind(self, value: ast.expr, hint: str) -> ast.expr:
        """Assign a value to a new local name; return the name."""
        name = self.names.fresh(hint)
        self.assign(name, value)
        return self.load(name)

    def bind_unless(self, value: ast.expr, hint: str, test: Make, instead: Make) -> ast.expr:
        """Assign a value to a new local name, and another to it if a test of it is true; return the
        name."""
        name = self.names.fresh(hint)
        self.assign(name, value)
        other = self.code.assign(name, instead(self.code.name(name)))
        self.emit(self.code.branch(test(self.load(name)), [other], []))
        return self.load(name)
