"""A program from its translated IR to a host function, through the pipeline of its target.

The typed stage is all that `check` and `show` need; the rest runs when the program is first called.
"""

from __future__ import annotations

import logging
import warnings
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self, final

import torch

from ... import dispatch
from ...autotuning.methods import is_watched
from ...config import current, may_compile
from ...diagnostics.catalogue.call import WouldCompile
from ...diagnostics.diagnostic import RelayWarning, RunError
from ...dispatch.registry import REGISTRY, Table
from ...dispatch.state import STATE, State
from ...dispatch.view import NOTHING, Signature, View, calls_of, view_of
from ...garbage import uncollected
from ...ir.expr import Function, Match, function_type
from ...ir.module import Module
from ...ir.traverse import nodes_of
from ...ir.types import FnType
from ...ir.verify import Stage
from ...kernels.backend import Backend
from ...kernels.outlined import OUTLINED
from ...lazy import LazyModule
from ...notices import compiling
from ...operators.host.debugging import is_debugged
from ...passes.base import Context
from ...passes.insertion import INSERTIONS
from ...passes.kept import KeptModules
from ...passes.manager import Manager, Pipeline, Ran, up_to
from ...passes.rewrites.low_rank_gradients import gives_fresh
from ...text.printer import to_text
from ..host import CompiledProgram, compile_module
from ..values.representation import NO_DATA, UserData
from .kernels import Kernels
from .lowerings import (
    EvaluatedProgram,
    Executable,
    Lowering,
    Plain,
    lowering_in_effect,
    lowering_on,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ...diagnostics.diagnostic import Diagnostic
    from ...infer.explanations import cases
    from ...passes.normalise import flavours
    from . import evaluator, pipelines
else:
    cases = LazyModule("pyrelay.infer.explanations.cases")
    flavours = LazyModule("pyrelay.passes.normalise.flavours")
    evaluator = LazyModule("pyrelay.runtime.compile.evaluator")
    pipelines = LazyModule("pyrelay.runtime.compile.pipelines")

_LOGGER: Final = logging.getLogger("pyrelay.passes")
_SHOWN: Final[dict[str | tuple[str, type[Warning], int], int]] = {}
"""The registry with which Python's filters show a warning once a place."""

_MOST_STATES: Final = 64
"""States that are known at a time; a program run under more of them finds its view anew."""


@final
class Program:
    """One entry function with everything it reaches, at every stage."""

    def __init__(
        self,
        module: Module,
        entry: str,
        data: UserData = NO_DATA,
        view: View = NOTHING,
        gradients: tuple[int, ...] | None = None,
        *,
        stage: Stage = Stage.TRANSLATED,
    ) -> None:
        """`module` has reached `stage`. `data` describes the user's own data types, `view` the
        operators that are dispatched. `gradients` leads to the gradients in the result that may be
        pairs of factors; None if none may."""
        self.view: Final = view
        self.translated: Final = module
        self.data: Final = data
        self.entry: Final = entry
        self.gradients: Final = gradients
        self._compiled: Final[dict[tuple[Hashable, ...], Executable]] = {}
        self._modules: Final[dict[Hashable, Module]] = {}
        self._views: Final = _Views(self)
        self._dumps: Final = count(1)
        self._passes: Final = Manager(
            module,
            stage,
            Context(entry=entry, opaque=view.concerns, overridden=view.names, evaluate=_fold),
            is_verified=lambda: current().verify,
            observer=self._ran,
            store=self._store,
        )
        self._kept: Final = KeptModules(
            module, stage, entry, (torch.__version__,), attributes=(OUTLINED,)
        )

    @classmethod
    def of_typed(cls, typed: Module, entry: str, data: UserData = NO_DATA) -> Self:
        """Return the program of a module that has been checked before."""
        return cls(typed, entry, data, stage=Stage.TYPED)

    def pipeline(self, lowering: Lowering) -> Pipeline:
        """Return the passes that the program goes through for a lowering."""
        return pipelines.pipeline_of(lowering, self.gradients)

    def at(self, phase: str) -> Module:
        """Return the program behind a phase of the pipeline that runs it under the options in
        effect; where that has no such phase, of the pipeline of kernels. Raises CheckError."""
        return self._passes.run(pipelines.pipeline_to(phase, self.lowering, self.gradients))

    @property
    def typed(self) -> Module:
        """The program after inference. Raises CheckError."""
        return self._until("typed")

    @cached_property
    def is_debugged(self) -> bool:
        """Whether it is compiled for a debugger: to calls of torch, line by line."""
        return is_debugged(self.typed)

    @property
    def lowering(self) -> Lowering:
        """The executor of the program under the options in effect."""
        return Plain.DEBUGGER if self.is_debugged else lowering_in_effect()

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings about what is valid in the program but cannot be intended."""
        nodes = nodes_of(self.typed)
        if not any(isinstance(node, Match) for node in nodes):
            return ()
        return tuple(problem.diagnostic() for problem in cases.unreachable_cases(self.typed))

    def warn(self) -> None:
        """Issue the warnings as Python's own, at the user's lines; filters of the user decide what
        becomes of them."""
        for diagnostic in self.warnings:
            if diagnostic.primary is None:
                warnings.warn(diagnostic.title, RelayWarning, stacklevel=2)
                continue
            span = diagnostic.primary.span
            text = f"{diagnostic.title} [{diagnostic.code}]"
            place = span.file.name, span.line, "pyrelay"
            warnings.warn_explicit(text, RelayWarning, *place, registry=_SHOWN)

    @property
    def anf(self) -> Module:
        """The program in A-normal form."""
        return self._until("anf")

    @property
    def derived(self) -> Module:
        """The program with its transforms expanded, as the evaluator runs it. Raises CheckError."""
        return self._behind(Plain.EVALUATOR)

    @property
    def simplified(self) -> Module:
        """The program as host code that calls torch is made of it: as few calls as there can be;
        for a debugger it stays as it is written."""
        return self._behind(Plain.DEBUGGER if self.is_debugged else Plain.TORCH)

    @property
    def regions(self) -> Module:
        """The program with its tensor code in kernels and regions."""
        return self.at("regions")

    def launched(self, backend: Backend) -> Module:
        """Return the program as a backend runs it."""
        return self._behind(backend)

    def cut(self, backend: Backend) -> Module:
        """Return the program with its tensor code in kernels and regions, as a backend cuts it."""
        return self._behind(backend, "regions")

    def _until(self, phase: str) -> Module:
        return self._behind(Plain.EVALUATOR, phase)

    def _behind(self, lowering: Lowering, phase: str | None = None) -> Module:
        """Return the program behind the passes of a lowering, or those up to a phase. Where it is
        found on disk, the passes are not even loaded."""
        key = lowering, phase, current().layout, INSERTIONS.all
        known = self._modules.get(key)
        if known is None:
            known = self._modules[key] = self._found_or_made(lowering, phase)
        return known

    def _found_or_made(self, lowering: Lowering, phase: str | None) -> Module:
        store, name = self._store(), name_of(lowering)
        if store is None or name is None:
            return self._passes.run(self._passes_to(lowering, phase))
        target = self._target(name, phase)
        found = store.behind(target)
        if found is None:
            passes = self._passes_to(lowering, phase)
            found = self._passes.run(passes)
            store.name(target, passes)
        return found

    def _target(self, name: str, phase: str | None) -> str:
        return repr((name, phase, current().layout, self.gradients))

    def _identity(self, lowering: Lowering) -> str | None:
        """Return a text that determines the program behind the passes of a lowering."""
        store, name = self._store(), name_of(lowering)
        return None if store is None or name is None else store.named(self._target(name, None))

    def _passes_to(self, lowering: Lowering, phase: str | None) -> Pipeline:
        passes = self.pipeline(lowering)
        return passes if phase is None else up_to(passes, phase)

    def _store(self) -> KeptModules | None:
        """Return the modules behind pipelines that are kept on disk; None where passes must run:
        somebody looks at them, or they depend on what was registered."""
        options = current()
        is_logged = _LOGGER.isEnabledFor(logging.INFO)
        is_watched = options.verify or options.dump_dir is not None or is_logged
        is_plain = not self.view and not INSERTIONS.all
        return self._kept if options.cache and is_plain and not is_watched else None

    def _ran(self, ran: Ran) -> None:
        """Log a pass, and write the module behind it to a file where options say so."""
        _LOGGER.info("%s of %s took %.1f ms", ran.step.name, self.entry, 1e3 * ran.seconds)
        directory = current().dump_dir
        if directory is not None and ran.after is not ran.before:
            directory.mkdir(parents=True, exist_ok=True)
            file = directory / f"{self.entry}.{next(self._dumps):02}.{ran.step.name}.relay"
            file.write_text(to_text(ran.after), encoding="utf-8")

    @property
    def function(self) -> Function:
        """The typed entry."""
        return self.typed.functions[self.entry]

    @property
    def type(self) -> FnType:
        """The type of the entry."""
        return function_type(self.function)

    def compiled(self, device: torch.device) -> Executable:
        """Return the executable of the program on a device, under the implementations of operators
        that apply now; made at first use."""
        return self.now(device).as_it_is(device)

    def now(self, device: torch.device) -> Program:
        """Return the program under the implementations that apply to calls on a device now."""
        return self._views.now(device) if REGISTRY.table.registrations else self

    def as_it_is(self, device: torch.device) -> Executable:
        """Return the executable of the program on a device under the view of this program."""
        options = current()
        key = (
            device,
            options.lowering,
            options.measure,
            options.layout,
            is_watched(),
            options.tf32,
            options.graphs,
            INSERTIONS.all,
        )
        known = self._compiled.get(key)
        if known is None:
            with uncollected(), compiling(self.entry):
                known = self._compiled.get(key)
                if known is None:
                    known = self._compiled[key] = self._compile(device)
        return known

    def under(self, view: View) -> Program:
        """Return the program in which the operators of a view are dispatched."""
        return Program(self.anf, self.entry, self.data, view, stage=Stage.ANF)

    def _compile(self, device: torch.device) -> Executable:
        lowering = lowering_on(device, self.function.span)
        match Plain.DEBUGGER if self.is_debugged else lowering:
            case Plain.TORCH | Plain.DEBUGGER:
                return self.as_torch(device)
            case Plain.EVALUATOR:
                return EvaluatedProgram(lambda args: self._evaluate(args, device))
            case Backend() as backend if self.view == NOTHING and not is_watched():
                return self._launched(backend, device)
            case Backend():
                return self.as_torch(device)  # what is dispatched or watched is called, one by one

    def as_torch(self, device: torch.device) -> CompiledProgram:
        """Return the program as host code that calls torch."""
        data = self.data.representations
        fresh = self.gives_fresh()
        module, entry = self.simplified, self.entry
        is_bare = fresh and flavours.is_closed(module, entry)
        return compile_module(
            module, entry, device, data, self.view, gives_fresh=fresh, is_bare=is_bare
        )

    def gives_fresh(self, path: tuple[int, ...] = (), backend: Backend | None = None) -> bool:
        """Return whether all results at a path in that of the entry are tensors that operators in
        the program make, where a backend runs it, or torch; what is registered for an operator may
        return anything."""
        if self.view:
            return False
        module = self.simplified if backend is None else self._behind(backend, "simplified")
        return gives_fresh(module.functions[self.entry], path)

    def _launched(self, backend: Backend, device: torch.device) -> CompiledProgram:
        """Return the program as host code that calls the kernels of a backend."""
        module = self.launched(backend)
        kernels = Kernels(backend, module, device, self._identity(backend))
        data = self.data.representations
        fresh = self.gives_fresh((), backend)
        return compile_module(module, self.entry, device, data, instead=kernels, gives_fresh=fresh)

    def interpret(self, args: Sequence[Any], device: torch.device) -> Any:
        """Return the value that the reference evaluator finds."""
        return self.now(device)._evaluate(args, device)  # noqa: SLF001  it is a program, too

    def _evaluate(self, args: Sequence[Any], device: torch.device) -> Any:
        known = self.data.representations
        return evaluator.evaluate(self.derived, self.entry, args, device, representations=known)


@final
class _Views:
    """The programs that a program is under the implementations that apply where it is called.

    There is one for each view of the table, made when it is first needed: a registration that
    cannot matter to the program changes nothing, and one that is removed brings back the program of
    before.
    """

    def __init__(self, program: Program) -> None:
        self._program: Final = program
        self._programs: Final[dict[View, Program]] = {}
        self._known: tuple[Table, dict[tuple[State, torch.device], Program]] = REGISTRY.table, {}
        self._last: tuple[Table, State, torch.device, Program] | None = None

    def now(self, device: torch.device) -> Program:
        """Return the program for calls on a device under what is registered, included and excluded
        here. Raises RunError where that would compile, and compiling is not allowed."""
        table, state, last = REGISTRY.table, STATE.get(), self._last
        if last is not None and last[0] is table and last[1] is state and last[2] == device:
            return last[3]
        known = self._known
        if known[0] is not table or len(known[1]) >= _MOST_STATES:
            # A new dictionary: another thread may still add to the old one.
            known = self._known = table, {}
        found = known[1].get((state, device))
        if found is None:
            key = dispatch.device(device.type)
            found = known[1][state, device] = self._under(view_of(table, state, key, self._calls))
        self._last = table, state, device, found
        return found

    def _under(self, view: View) -> Program:
        if not view:
            return self._program
        found = self._programs.get(view)
        if found is None:
            if not may_compile():
                why = "other implementations of its operators apply"
                raise RunError(WouldCompile(self._program.entry, why))
            found = self._programs[view] = self._program.under(view)
        return found

    @cached_property
    def _calls(self) -> tuple[Signature, ...]:
        """The calls of operators in the program, before it is simplified or after."""
        program = self._program
        found = (calls_of(m) for m in (program.anf, program.derived, program.simplified))
        return tuple(dict.fromkeys(call for calls in found for call in calls))


def _fold(module: Module, entry: str) -> Any:
    """Return the value of a closed function, for constant folding."""
    return evaluator.evaluate(module, entry, (), dispatched=False)
