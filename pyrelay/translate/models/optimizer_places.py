"""Which optimiser updates which model: found while a program is translated, for the next time.

What updates a model decides what the model is made of, wherever it comes from and passes through. A
first translation notes the places that models come from, where they are passed on, and what updates
them; the translation that counts starts from what this one found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias, final

from ...diagnostics.catalogue.model import SecondOptimizer, UnknownCaller
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ..source.definition import Definition, StaticValue
from .optimizers import OptimizerUse


@final
@dataclass(frozen=True, slots=True)
class ParameterPlace:
    """A parameter of a function of the module."""

    function: str
    name: str


@final
@dataclass(frozen=True, slots=True)
class CreatedPlace:
    """A call of `create_model` in a function with some static arguments."""

    definition: Definition
    statics: tuple[tuple[str, StaticValue], ...]
    span: Span


Place: TypeAlias = ParameterPlace | CreatedPlace
"""Where a model comes from."""


@final
@dataclass(frozen=True, slots=True)
class Updaters:
    """The optimisers of models: of those passed to the entry, by parameter, and of those that the
    program makes."""

    passed: Mapping[str, OptimizerUse] = field(default_factory=dict[str, OptimizerUse])
    created: Mapping[CreatedPlace, OptimizerUse] = field(
        default_factory=dict["CreatedPlace", OptimizerUse]
    )


@final
@dataclass(frozen=True, slots=True)
class _Update:
    """A call of `update_model_params`: the optimiser, and where it and the model are named."""

    optimizer: OptimizerUse
    span: Span
    model: Span


@final
class Updates:
    """Where models go in one program, and what updates them there."""

    def __init__(self) -> None:
        self._updated: Final[dict[Place, list[_Update]]] = {}
        self._onward: Final[dict[Place, dict[Place, None]]] = {}
        self._created: Final[dict[CreatedPlace, None]] = {}

    def create(self, place: CreatedPlace) -> None:
        """Note that a model is made."""
        self._created[place] = None

    def update(
        self, places: Iterable[Place], optimizer: OptimizerUse, span: Span, model: Span
    ) -> None:
        """Note that an optimiser, named at `span`, updates a model that comes from one of some
        places."""
        for place in places:
            self._updated.setdefault(place, []).append(_Update(optimizer, span, model))

    def pass_on(self, places: Iterable[Place], to: Place) -> None:
        """Note that a model is passed for a parameter."""
        for place in places:
            self._onward.setdefault(place, {})[to] = None

    def unite(self, places: Sequence[Place]) -> None:
        """Note that a name may stand for the models of several places, so they must be alike."""
        for place, following in pairwise(places):
            self.pass_on([place], following)
            self.pass_on([following], place)

    def found(self, entry: str, report: Callable[[Problem], None]) -> Updaters:
        """Return the optimiser of each model; a second one is reported."""
        starts = [p for p in (*self._onward, *self._updated) if isinstance(p, ParameterPlace)]
        names = dict.fromkeys(p.name for p in starts if p.function == entry)
        reached: dict[Place, None] = {}
        passed = {n: self._optimizer(ParameterPlace(entry, n), reached, report) for n in names}
        created = {p: self._optimizer(p, reached, report) for p in self._created}
        for place, updates in self._updated.items():
            if place not in reached:
                report(UnknownCaller(updates[0].model))
        return Updaters(
            {n: o for n, o in passed.items() if o is not None},
            {p: o for p, o in created.items() if o is not None},
        )

    def _optimizer(
        self, start: Place, reached: dict[Place, None], report: Callable[[Problem], None]
    ) -> OptimizerUse | None:
        seen: dict[Place, None] = {}
        pending = [start]
        first: _Update | None = None
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen[place] = None
            for update in self._updated.get(place, ()):
                if first is None:
                    first = update
                elif update.optimizer != first.optimizer:
                    report(SecondOptimizer(update.span, first.span))
            pending += reversed(self._onward.get(place, {}))
        reached |= seen
        return None if first is None else first.optimizer
