"""Results that may be None or a value, where the types of some of the ways there are still open.

A loop that returns a value from inside, or None behind it, is a function that gives a value, None,
or what it gives itself. A join of the value and that would take them for one type: what a hole gets
is known from all places together, not from the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import final

from ..dataclass import dataclass
from ..ir.types import UNIT, Type, TypeHole
from ..prelude.library import inner_of
from .constraints import (
    ApplyConstraint,
    Constraint,
    FieldConstraint,
    FlowConstraint,
    JoinConstraint,
    OperatorConstraint,
)
from .solver import Solver
from .transforms import TransformConstraint


@final
@dataclass(frozen=True, slots=True)
class Sources:
    """The sources from which waiting constraints will fill open types."""

    flows: Mapping[TypeHole, list[Type]]
    """The types that arrive at an open type, from joins and annotated places."""
    computed: AbstractSet[TypeHole]
    """The open results of operators, fields and functions that are not known yet."""

    def behind(self, hole: TypeHole) -> list[Type]:
        """Return the types that arrive at an open one, on all ways: known ones, and open ones."""
        found: list[Type] = [hole]
        seen, pending = {hole}, [hole]
        while pending:
            for ty in self.flows.get(pending.pop(), ()):
                if not isinstance(ty, TypeHole):
                    found.append(ty)
                elif ty not in seen:
                    seen.add(ty)
                    found.append(ty)
                    pending.append(ty)
        return found


def sources_of(solver: Solver, stuck: Iterable[Constraint]) -> Sources:
    """Return the types that waiting constraints will fill open types with."""
    flows: dict[TypeHole, list[Type]] = {}
    computed: set[TypeHole] = set()
    for each in stuck:
        match each:
            case JoinConstraint(result, arms):
                _add(solver, flows, result, [ty for ty, _ in arms])
            case FlowConstraint(actual, expected):
                _add(solver, flows, expected, [actual])
            case _:
                made = _made_by(solver, each)
                computed |= {made} if isinstance(made, TypeHole) else set()
    return Sources(flows, computed)


def _add(
    solver: Solver, flows: dict[TypeHole, list[Type]], target: Type, values: list[Type]
) -> None:
    target = solver.shallow(target)
    if isinstance(target, TypeHole):
        flows.setdefault(target, []).extend(map(solver.shallow, values))


def _made_by(solver: Solver, constraint: Constraint) -> Type | None:
    match constraint:
        case OperatorConstraint(call):
            return solver.shallow(call.result)
        case ApplyConstraint(callee=callee, result=result):
            # The result of a known function follows from its own body.
            return solver.shallow(result) if isinstance(solver.shallow(callee), TypeHole) else None
        case FieldConstraint(result=result) | TransformConstraint(result=result):
            return solver.shallow(result)
        case _:
            return None


def maybe_none(solver: Solver, join: JoinConstraint, sources: Sources) -> list[TypeHole]:
    """Return the open types among the arms of a join that get None in one place and a value in
    another."""
    heads = (solver.shallow(ty) for ty, _ in join.arms)
    return [h for h in heads if isinstance(h, TypeHole) and _is_optional(sources.behind(h))]


def must_wait(solver: Solver, join: JoinConstraint, sources: Sources) -> bool:
    """Return whether a join gets None on one way, and on another a type that is not known yet: it
    is not taken for None while something may determine it."""
    heads = [solver.shallow(ty) for ty, _ in join.arms]
    behind = [sources.behind(h) if isinstance(h, TypeHole) else [h] for h in heads]
    if not any(_is_none(ty) for types in behind for ty in types):
        return False
    return any(
        ty in sources.computed or not (isinstance(ty, TypeHole) or _is_none(ty))
        for head, types in zip(heads, behind, strict=True)
        if isinstance(head, TypeHole)
        for ty in types
    )


def _is_none(ty: Type) -> bool:
    return ty == UNIT or inner_of(ty) is not None


def _is_optional(types: list[Type]) -> bool:
    has_value = any(not isinstance(ty, TypeHole) and ty != UNIT for ty in types)
    return has_value and any(map(_is_none, types))
