"""Passes from outside the package in its pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import Final, final

from .base import Pass
from .manager import Phase, Pipeline


@final
@dataclass(frozen=True, slots=True, eq=False)
class Insertion:
    """A pass in the pipelines, behind every pass named `after`; with `with`, for the block."""

    step: Pass
    after: str

    def remove(self) -> None:
        """Take the pass out of the pipelines; nothing happens if it is not there."""
        _INSERTIONS.change(lambda found: tuple(i for i in found if i is not self))

    def __enter__(self) -> Insertion:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def insert(step: Pass, *, after: str) -> Insertion:
    """Put a pass into the pipelines of all targets, behind every pass of a name. Programs that run
    from then on are compiled with it."""
    insertion = Insertion(step, after)
    _INSERTIONS.change(lambda found: (*found, insertion))
    return insertion


def insertions() -> tuple[Insertion, ...]:
    """Return the passes that are inserted now: one object as long as they stay the same."""
    return _INSERTIONS.all


@final
class _Insertions:
    """The passes that were inserted: one immutable value, replaced as a whole."""

    def __init__(self) -> None:
        self.all: tuple[Insertion, ...] = ()
        self._lock: Final = Lock()

    def change(self, new: Callable[[tuple[Insertion, ...]], tuple[Insertion, ...]]) -> None:
        """Replace the insertions by others."""
        with self._lock:
            self.all = new(self.all)


_INSERTIONS: Final = _Insertions()


def with_inserted(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with the passes that are inserted now."""
    if not _INSERTIONS.all:
        return pipeline
    return tuple(replace(phase, passes=tuple(_steps(phase))) for phase in pipeline)


def _steps(phase: Phase) -> Iterator[Pass]:
    for step in phase.passes:
        yield step
        yield from (i.step for i in _INSERTIONS.all if i.after == step.name)
