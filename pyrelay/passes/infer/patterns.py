"""The constraint that a pattern makes: it is tried on a value of the type that it matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...diagnostics.catalogue.types import PatternMismatch
from ...diagnostics.diagnostic import Problem
from ...ir.expr import ConstructorPattern, LiteralPattern, Pattern, TuplePattern
from ...ir.op import Stuck
from ...ir.types import AdtType, Type, TypeHole, show
from .solver import Solver

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.module import AdtDef


@final
@dataclass(slots=True)
class PatternConstraint:
    """A pattern is tried on a value of its type."""

    pattern: Pattern
    value: Type
    wanted: Type
    adts: Mapping[str, AdtDef]

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.pattern.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        value, literal = solver.shallow(self.value), isinstance(self.pattern, LiteralPattern)
        if literal and isinstance(value, TypeHole) and not solver.settling:
            raise Stuck(value)  # a number of whatever dtype the value turns out to have
        solver.flow(self.value, self.wanted)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Give what to tell the user."""
        value = solver.resolve(self.value)
        cases = self.adts[value.name].constructors if isinstance(value, AdtType) else ()
        names = tuple(c.name for c in cases)
        return PatternMismatch(self.span, self._kind(solver), show(value), names)

    def _kind(self, solver: Solver) -> str:
        match self.pattern:
            case ConstructorPattern(adt, name):
                return f"a `{name}` of {adt}"
            case TuplePattern(fields):
                return f"a tuple of {len(fields)}"
            case LiteralPattern(value):
                return f"the {_KINDS[type(value)]} {value!r}"
            case _:
                return show(solver.resolve(self.wanted))


_KINDS: Final[dict[type, str]] = {bool: "bool", int: "int", float: "float", str: "string"}
