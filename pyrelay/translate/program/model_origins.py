"""Which optimiser updates which model.

What updates a model decides the type of the memory beside its parameters, wherever it comes from
and passes through. Translation notes the places that models come from, where they are passed on,
and what updates them; from these follows the optimiser of each place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.model import SecondOptimizer, UnknownCaller
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ..source.definition import Definition, StaticValue
from ..source.optimizers import OptimizerUse


@final
@dataclass(frozen=True, slots=True)
class ParameterOrigin:
    """A parameter of a function of the module."""

    function: str
    name: str


@final
@dataclass(frozen=True, slots=True)
class CreatedOrigin:
    """A call of `create_model` in a function with some static arguments."""

    definition: Definition
    statics: tuple[tuple[str, StaticValue], ...]
    span: Span


ModelOrigin: TypeAlias = ParameterOrigin | CreatedOrigin
"""Where a model comes from."""


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
        self._updated: Final[dict[ModelOrigin, list[_Update]]] = {}
        self._onward: Final[dict[ModelOrigin, dict[ModelOrigin, None]]] = {}
        self._created: Final[dict[CreatedOrigin, None]] = {}
        self._found: Final[dict[ModelOrigin, dict[OptimizerUse | None, None]]] = {}

    def create(self, place: CreatedOrigin) -> None:
        """Note that a model is made."""
        self._created[place] = None

    def update(
        self, places: Iterable[ModelOrigin], optimizer: OptimizerUse, span: Span, model: Span
    ) -> None:
        """Note that an optimiser, named at `span`, updates a model that comes from one of some
        places."""
        for place in places:
            self._updated.setdefault(place, []).append(_Update(optimizer, span, model))

    def pass_on(self, places: Iterable[ModelOrigin], to: ModelOrigin) -> None:
        """Note that a model is passed for a parameter."""
        for place in places:
            self._onward.setdefault(place, {})[to] = None

    def unite(self, places: Sequence[ModelOrigin]) -> None:
        """Note that a name may stand for the models of several places, so they must be alike."""
        for place, following in pairwise(places):
            self.pass_on([place], following)
            self.pass_on([following], place)

    def settle(self, entry: Iterable[ParameterOrigin], report: Callable[[Problem], None]) -> None:
        """Find the optimisers of the models at all places, from those that are passed to the entry
        or made; a second one for a model is reported."""
        for start in (*entry, *self._created):
            reached = self._reached(start)
            optimizer = self._optimizer(reached, report)
            for place in reached:
                self._found.setdefault(place, {})[optimizer] = None
        for place, updates in self._updated.items():
            if place not in self._found:
                report(UnknownCaller(updates[0].model))

    def optimizers(self, places: Iterable[ModelOrigin]) -> tuple[OptimizerUse | None, ...]:
        """Return the optimisers of the models that may be at some places, with None among them
        where there is a model that no optimiser updates."""
        found: dict[OptimizerUse | None, None] = {}
        for place in places:
            found |= self._found.get(place, {})
        return tuple(found)

    def _reached(self, start: ModelOrigin) -> dict[ModelOrigin, None]:
        seen: dict[ModelOrigin, None] = {}
        pending = [start]
        while pending:
            place = pending.pop()
            if place not in seen:
                seen[place] = None
                pending += reversed(self._onward.get(place, {}))
        return seen

    def _optimizer(
        self, places: Iterable[ModelOrigin], report: Callable[[Problem], None]
    ) -> OptimizerUse | None:
        updates = [u for place in places for u in self._updated.get(place, ())]
        for update in updates:
            if update.optimizer != updates[0].optimizer:
                report(SecondOptimizer(update.span, updates[0].span))
        return updates[0].optimizer if updates else None
