"""The work-list that solves the constraints of inference."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ..diagnostics.catalogue.sizes import DimsMismatch
from ..diagnostics.catalogue.types import EndlessType
from ..diagnostics.diagnostic import Problem
from ..ir.calls.attributes import WrongAttribute
from ..ir.dims import Dim, DimHole
from ..ir.expr import Function
from ..ir.op import Clash, Stuck
from ..ir.types import AdtType, DTypeHole, TypeHole
from ..prelude.library import OPTION
from .constraints import Constraint, FlowConstraint, JoinConstraint
from .maybe_none import Sources, maybe_none, must_wait, sources_of
from .operators import StaticNeeded, WidthsMixed
from .quotients import choice_in, quotient_in
from .solver import CheckSite, Endless, Solver

if TYPE_CHECKING:
    from ..diagnostics.source import Span

Waiting: TypeAlias = list[Constraint]


@final
class Worklist:
    """Constraints in program order; those that are stuck wait for their hole to be filled."""

    def __init__(self, solver: Solver) -> None:
        self._solver: Final = solver
        self._ready: Final[deque[Constraint]] = deque()
        self._waiting: Final[dict[tuple[str, int], Waiting]] = {}
        self._stuck: Final[dict[int, Constraint]] = {}
        self._owners: Final[dict[int, Function | None]] = {}
        self._tried: Constraint | None = None
        self._fillers: Final[dict[tuple[str, int], Constraint]] = {}
        """The constraint that filled each hole."""
        self.problems: Final[list[Problem]] = []

    def add(self, constraint: Constraint) -> None:
        """Try a new constraint, and everything that it lets go on."""
        self._owners[id(constraint)] = self._solver.owner
        self._try(constraint)
        self._drain()

    def equate(self, left: Dim, right: Dim, span: Span, place: CheckSite | None) -> None:
        """Make two dims equal, or report at `span` that they are not."""
        self._solver.span, self._solver.place = span, place
        try:
            self._solver.unify_dims(left, right)
        except Clash as clash:
            self.problems.append(DimsMismatch(span, str(clash)))
        self._drain()

    def settle(self) -> None:
        """Solve what is left: equations first, then each stuck rule may choose, in order."""
        while True:
            self._retry_equations()
            self._drain()
            settled = self._solve_size() or self._settle_one() or self._guess_one()
            if not settled and not self._choose_size():
                return

    def _solve_size(self) -> bool:
        return not self.problems and _divide(self._solver)

    def _choose_size(self) -> bool:
        try:
            return not self.problems and _choose(self._solver)
        except Clash as clash:
            assert self._solver.span is not None
            self.problems.append(DimsMismatch(self._solver.span, str(clash)))
            return False

    def _guess_one(self) -> bool:
        """Settle a constraint by a guess, unless mistakes have been found: what is open may then
        follow from them."""
        return not self.problems and self._settle_one(guessing=True)

    def _settle_one(self, *, guessing: bool = False) -> bool:
        self._solver.guessing = guessing
        for _ in range(len(self._stuck)):
            constraint = next(iter(self._stuck.values()))
            if isinstance(constraint, JoinConstraint) and not guessing:
                if self._make_optional(constraint):
                    return True
                if must_wait(self._solver, constraint, self._sources()):
                    self._stuck[id(constraint)] = self._stuck.pop(id(constraint))
                    continue
            del self._stuck[id(constraint)]
            self._solver.settling = True
            before = len(self.problems)
            progressed = self._try(constraint)
            self._solver.settling = False
            if progressed or len(self.problems) > before:
                return True
        return False

    def _make_optional(self, join: JoinConstraint) -> bool:
        """Make the arms of a join optional that get None and a value; return whether there is
        one."""
        found = maybe_none(self._solver, join, self._sources())
        for hole in found:
            self._solver.unify(hole, AdtType(OPTION, (self._solver.fresh(),)))
        return bool(found)

    def _sources(self) -> Sources:
        return sources_of(self._solver, self._stuck.values())

    def unsolved(self) -> list[Constraint]:
        """Return the constraints that never found out enough, in program order."""
        return list(self._stuck.values())

    def unsolved_equation(self) -> tuple[Dim, Span] | None:
        """Return a dim that must be 0 and that nothing solves, with its place."""
        for left, right, span, _ in self._solver.equations:
            difference = self._solver.resolve_dim(left) - self._solver.resolve_dim(right)
            if difference.terms:
                return difference, span
        return None

    def _retry_equations(self) -> None:
        try:
            self._solver.retry_equations()
        except Clash as clash:
            assert self._solver.span is not None
            self.problems.append(DimsMismatch(self._solver.span, str(clash)))

    def _try(self, constraint: Constraint) -> bool:
        if isinstance(constraint, JoinConstraint):
            parts = constraint.parts(self._solver)
            for part in parts:
                self._owners[id(part)] = self._owners[id(constraint)]
            self._ready.extend(parts)
            if parts:
                return True
        self._solver.span, self._solver.place = constraint.span, None
        self._tried = constraint
        owner, self._solver.owner = self._solver.owner, self._owners[id(constraint)]
        try:
            constraint.attempt(self._solver)
        except Stuck as stuck:
            self._wait(constraint, stuck)
            return False
        except Endless:
            self.problems.append(EndlessType(constraint.span))
        except (Clash, StaticNeeded, WidthsMixed, WrongAttribute) as clash:
            # The result's hole stays open: what waits for it is not blamed for this mistake.
            self.problems.append(self._blamed(constraint).explain(self._solver, clash))
        finally:
            self._solver.owner = owner
        return True

    def _blamed(self, constraint: Constraint) -> Constraint:
        """Return the constraint that a clash is to be explained by: where all arms of a join have
        one type, the place that expects another of its result."""
        if not isinstance(constraint, JoinConstraint):
            return constraint
        hole = self._solver.last_hole(constraint.result)
        filler = None if hole is None else self._fillers.get(_key(hole))
        arms = [ty for ty, _ in constraint.arms if self._solver.last_hole(ty) != hole]
        if not isinstance(filler, FlowConstraint) or len(set(map(self._solver.resolve, arms))) != 1:
            return constraint
        return replace(filler, actual=arms[0])

    def _wait(self, constraint: Constraint, stuck: Stuck) -> None:
        self._stuck[id(constraint)] = constraint
        for hole in stuck.on:
            self._waiting.setdefault(_key(hole), []).append(constraint)

    def _drain(self) -> None:
        filled = self._solver.filled
        while filled or self._ready:
            while filled:
                key = filled.pop()
                if self._tried is not None:
                    self._fillers.setdefault(key, self._tried)
                for constraint in self._waiting.pop(key, ()):
                    self._wake(constraint)
            if self._ready:
                self._try(self._ready.popleft())

    def _wake(self, constraint: Constraint) -> None:
        if self._stuck.pop(id(constraint), None) is not None:
            self._ready.append(constraint)


def _divide(solver: Solver) -> bool:
    """Solve an equation such as `2*?1 == n` by a division that has to be exact; return whether
    there is one."""
    for left, right, span, place in solver.equations:
        quotient = quotient_in(solver.resolve_dim(left) - solver.resolve_dim(right))
        if quotient is not None and quotient.power == 1:
            solver.span, solver.place = span, place
            solver.fill_dim(quotient.hole, quotient.dividend // quotient.divisor)
            return True
    return False


def _choose(solver: Solver) -> bool:
    """Choose one of the solutions of an equation; return whether one has several. Raises Clash."""
    for left, right, span, place in tuple(solver.equations):
        chosen = choice_in(solver.resolve_dim(left) - solver.resolve_dim(right))
        if chosen is None:
            continue
        solver.span, solver.place = span, place
        solver.unify_dims(*chosen)
        if solver.filled:
            return True
    return False


def _key(on: Any) -> tuple[str, int]:
    """Return the key of the hole that something waits for: the first hole inside it."""
    match on:
        case TypeHole(number):
            return ("type", number)
        case DTypeHole(number):
            return ("dtype", number)
        case Dim():
            hole = next(a for a in on.atoms() if isinstance(a, DimHole))
            return ("dim", hole.number)
        case _:
            raise AssertionError(f"nothing to wait for in {on}")
