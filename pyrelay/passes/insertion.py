"""Passes from outside the package in its pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, final

from ..dataclass import dataclass
from ..registry import Registry, Removable
from .base import Pass
from .manager import Phase, Pipeline


@final
@dataclass(frozen=True, slots=True, eq=False)
class Insertion(Removable):
    """A pass in the pipelines, behind every pass named `after`."""

    step: Pass
    after: str

    def remove(self) -> None:
        """Take the pass out of the pipelines; nothing happens if it is not there."""
        INSERTIONS.remove(self)


INSERTIONS: Final[Registry[Insertion]] = Registry()
"""The passes that are inserted."""


def insert(step: Pass, *, after: str) -> Insertion:
    """Put a pass into the pipelines of all targets, behind every pass of a name. Programs that run
    from then on are compiled with it."""
    insertion = Insertion(step, after)
    INSERTIONS.add(insertion)
    return insertion


def with_inserted(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with the passes that are inserted now."""
    if not INSERTIONS.all:
        return pipeline
    return tuple(replace(phase, passes=tuple(_steps(phase))) for phase in pipeline)


def _steps(phase: Phase) -> Iterator[Pass]:
    for step in phase.passes:
        yield step
        yield from (i.step for i in INSERTIONS.all if i.after == step.name)
