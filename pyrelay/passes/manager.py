"""Pipelines of passes, and the manager that runs them.

Programs, `show` and `opt` run passes through this module. It checks that a module has reached the
stage that a pass needs, times each pass, and verifies the module behind it where that is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias, final

from ..dataclass import dataclass
from ..ir.module import Module
from ..ir.verify import Stage, VerifyError, includes, verify, verify_conversions
from .base import Context, Pass


@final
@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of a pipeline: `show` prints the module behind it."""

    name: str
    passes: tuple[Pass, ...]

    @property
    def gives(self) -> Stage | None:
        """The stage that its passes bring a module to; None if they preserve the stage."""
        return next((p.gives for p in reversed(self.passes) if p.gives is not None), None)


Pipeline: TypeAlias = tuple[Phase, ...]
"""The phases that a module goes through for one target, in order."""


def up_to(phases: Pipeline, name: str) -> Pipeline:
    """Return a pipeline up to the phase of a name. Raises KeyError if it has none."""
    names = [phase.name for phase in phases]
    if name not in names:
        raise KeyError(name)
    return phases[: names.index(name) + 1]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """One pass that has run: the modules before and after it, and how long it took.

    `stage` is the stage of the module `after`, `seconds` is wall-clock time. `after` is `before`
    if nothing changed.
    """

    step: Pass
    before: Module
    after: Module
    stage: Stage
    seconds: float


Observer: TypeAlias = Callable[[Ran], None]
"""Is called after each pass."""


class StageError(Exception):
    """A pass needs a stage that the module has not reached."""

    def __init__(self, step: Pass, stage: Stage) -> None:
        needed, reached = step.needs.value, stage.value
        super().__init__(f"the pass {step.name} needs a module at stage {needed}, not {reached}")


def run_passes(
    module: Module,
    stage: Stage,
    passes: Sequence[Pass],
    context: Context,
    *,
    verified: bool = False,
    observer: Observer | None = None,
) -> tuple[Module, Stage]:
    """Return the module after passes, and the stage it has reached.

    With `verified`, the invariants of the stage are checked after each pass, and that no pass
    inserts a conversion that loses values. Raises StageError, VerifyError, and whatever a pass
    raises: CheckError where the user's program is at fault.
    """
    for step in passes:
        if not includes(stage, step.needs):
            raise StageError(step, stage)
        started = time.perf_counter()
        made = step.run(module, context)
        seconds = time.perf_counter() - started
        stage = step.gives or preserved(stage, changed=made is not module)
        if verified:
            _verify(step, module, made, stage)
        if observer is not None:
            observer(Ran(step, module, made, stage, seconds))
        module = made
    return module, stage


def _verify(step: Pass, before: Module, after: Module, stage: Stage) -> None:
    """Check the module that a pass has returned. Raises VerifyError, which names the pass."""
    try:
        verify(after, stage, before)
        verify_conversions(before, after)
    except VerifyError as error:
        error.add_note(f"found after the pass {step.name}")
        raise


def preserved(stage: Stage, *, changed: bool) -> Stage:
    """Return the stage after a pass that preserves stages. Let blocks of a module that changed are
    regrouped by their effects only when a pass does so."""
    is_grouped = stage in (Stage.FLAVOURED, Stage.REGIONS)
    return Stage.DERIVED if changed and is_grouped else stage


class ModuleCache(Protocol):
    """Keeps modules behind pipelines that begin with one module."""

    def find(self, phases: Pipeline, /) -> tuple[Module, Stage] | None:
        """Return the module behind some phases, and its stage; None where there is none."""

    def holds(self, module: Module, /) -> bool:
        """Return whether all attributes of a module are kept with it."""
        ...

    def keep(self, phases: Pipeline, module: Module, stage: Stage, /) -> None:
        """Keep the module behind some phases, if it can be kept."""


def no_store() -> ModuleCache | None:
    """Return None: nothing is kept."""
    return None


@final
class Manager:
    """Runs pipelines over one module, each phase once for each module that it meets.

    Pipelines that begin alike, or whose phases change nothing, share what comes after. A pass that
    is idempotent is skipped on a module that it returned. Where a store has the module behind some
    phases, these are not run.
    """

    def __init__(
        self,
        module: Module,
        stage: Stage,
        context: Context,
        *,
        is_verified: Callable[[], bool] = lambda: False,
        observer: Observer | None = None,
        store: Callable[[], ModuleCache | None] = no_store,
    ) -> None:
        """`module` has reached `stage`. `is_verified` is asked before each phase, `store` before
        each run."""
        self.context: Final = context
        self._module: Final = module
        self._stage: Final = stage
        self._known: Final[dict[tuple[Module, Phase], tuple[Module, Stage]]] = {}
        self._settled: Final[dict[Pass, Module]] = {}
        self._found: Final[dict[Pipeline, tuple[Module, Stage]]] = {}
        """The modules that stores have returned."""
        self._store: Final = store
        self._is_verified: Final = is_verified
        self._observer: Final = observer

    def run(self, pipeline: Pipeline) -> Module:
        """Return the module after a pipeline. Phases whose stage the first module has reached are
        skipped. Raises whatever `run_passes` raises."""
        phases = tuple(p for p in pipeline if p.gives is None or not includes(self._stage, p.gives))
        store = self._store()
        begin, (module, stage) = self._begin(phases, store)
        kept = None
        for number, phase in enumerate(phases[begin:], begin + 1):
            known = self._known.get((module, phase))
            if known is None:
                known = self._known[module, phase] = self._phase(module, stage, phase)
            module, stage = known
            if store is not None and store.holds(module):
                kept = phases[:number], module, stage
        if store is not None and kept is not None:
            store.keep(*kept)
        return module

    def _begin(
        self, phases: Pipeline, store: ModuleCache | None
    ) -> tuple[int, tuple[Module, Stage]]:
        """Return how many phases need not be run, and the module behind them with its stage."""
        number, reached = 0, (self._module, self._stage)
        while number < len(phases) and (known := self._known.get((reached[0], phases[number]))):
            number, reached = number + 1, known
        if store is None:
            return number, reached
        for length in range(len(phases), number, -1):
            found = self._found.get(phases[:length]) or store.find(phases[:length])
            if found is not None:
                self._found[phases[:length]] = found
                return length, found
        return number, reached

    def _phase(self, module: Module, stage: Stage, phase: Phase) -> tuple[Module, Stage]:
        verified = self._is_verified()
        for step in phase.passes:
            if self._settled.get(step) is module:
                continue
            module, stage = run_passes(
                module, stage, (step,), self.context, verified=verified, observer=self._observer
            )
            if step.is_idempotent:
                self._settled[step] = module
        return module, stage
