"""A program compiled to Python functions that call torch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import FunctionType, TracebackType
from typing import Any, Final, TypeAlias, final

import torch

from ...autotuning.methods import is_transformed
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE, SourceFile, Span
from ...dispatch.view import NOTHING, View
from ...ir.expr import (
    Call,
    Clause,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Match,
    RefRead,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.traverse import Steps, post_order, run, spine
from ...ir.types import FnType, TupleType, Type
from ...kernels.backend import Direct, FailedInside, Run, RunsSettled, RunsWhole
from ...kernels.function_plan import FunctionPlan, Planned
from ..border.argument_sizes import check_assumptions
from ..border.autograd import as_typed, unrecorded
from ..border.failure import located, located_inside, tells_more
from ..values.representation import NOTHING_KNOWN, Representations
from . import functions
from .body import BodyWriter
from .data import DataLayout
from .debugging import show_globals, source_names
from .deep import find_deep
from .names import NO_NAMES
from .pool import Pool
from .program import HostProgram
from .trampoline import DEPTH, DeepFunction, deep_function

_Context: TypeAlias = Callable[[], AbstractContextManager[object]]
_torch: Any = torch
UNWATCHED: Final[_Context] = getattr(_torch._C, "_AutoDispatchBelowAutograd", nullcontext)  # noqa: SLF001  it has no public name
"""In it calls go past the layers in which autograd notes views and versions even where it records
nothing: a fifth of the time of a small call."""

_OWNER: Final = "__program__"
"""The name by which generated functions know their program, which finds their frames by it."""

Instead: TypeAlias = Callable[[str, Callable[..., Any]], Callable[..., Any]]


def compile_module(
    module: Module,
    entry: str,
    device: torch.device,
    representations: Representations = NOTHING_KNOWN,
    view: View = NOTHING,
    instead: Instead | None = None,
    *,
    gives_fresh: bool = False,
    is_bare: bool = False,
) -> CompiledProgram:
    """Return the compiled form of a program in its last stage, started at a global function.

    Calls of operators in `view` are dispatched. `instead` returns what is called in the place of a
    global function, from its name and code. With `gives_fresh` all results are tensors that
    operators in the program make; with `is_bare` it does nothing but call our own operators, and
    whether autograd records them makes no difference.
    """
    plan = FunctionPlan(module, entry, view)
    deep_values = find_deep(plan)
    pool = Pool(device)
    layout = DataLayout(module, representations, pool)
    program = HostProgram(plan, pool, layout, deep_values=deep_values)
    compiled = CompiledProgram(program, plan.entry, gives_fresh=gives_fresh, is_bare=is_bare)
    for planned in plan.by_global.values():
        function = planned.function
        shown = source_names(plan, function) if program.is_debugged else NO_NAMES
        writer = BodyWriter(program, planned, shown)
        run(_write_global(writer, planned))
        compiled.add(writer.written, function.span.file)
    compiled.finish(instead)
    return compiled


def _write_global(writer: BodyWriter, planned: Planned) -> Steps[None]:
    base = writer.program.name(planned)
    for place, mode in enumerate(functions.modes_of(writer, planned)):
        written = yield functions.write_unit(writer, planned, base, mode)
        writer.written.insert(place, written)


@final
class CompiledProgram:
    """Calls the entry of a program on run-time values, under `no_grad`.

    Raises RunError, with the user's own place, where the program fails.
    """

    def __init__(
        self, program: HostProgram, entry: Planned, *, gives_fresh: bool, is_bare: bool
    ) -> None:
        self.gives_fresh: Final = gives_fresh
        self.is_bare: Final = is_bare
        """Whether its calls may bypass autograd."""
        self._program: Final = program
        self._entry: Final = entry
        self._files: Final[dict[str, SourceFile]] = {}
        self._definitions: Final[list[ast.FunctionDef]] = []
        self._namespace: Final = program.pool.namespace
        self._namespace[_OWNER] = self
        self.function: Any = None
        """The entry as host code: for values whose sizes have been checked, under `no_grad`."""
        self._started: Any = None

    @property
    def source(self) -> str:
        """The generated code as text: the same for the same program, in every process."""
        return "\n\n\n".join(ast.unparse(d) for d in self._definitions) + "\n"

    @property
    def is_debugged(self) -> bool:
        """Whether it was compiled for a debugger."""
        return self._program.is_debugged

    @property
    def is_dispatched(self) -> bool:
        """Whether calls of operators in it may be dispatched."""
        return bool(self._program.plan.view)

    @cached_property
    def constants(self) -> dict[int, torch.Tensor]:
        """The tensors that belong to the program itself, by their identities."""
        return {id(v): v for v in self._namespace.values() if isinstance(v, torch.Tensor)}

    @cached_property
    def requires_no_grad(self) -> bool:
        """Whether none of the tensors that belong to the program itself requires grad."""
        own = (v for v in self._namespace.values() if isinstance(v, torch.Tensor))
        return not any(tensor.requires_grad for tensor in own)

    def add(self, definitions: list[ast.FunctionDef], file: SourceFile) -> None:
        """Compile functions under the name of the file that they come from."""
        self._files[file.name] = file
        self._definitions.extend(definitions)
        if self._program.is_debugged:
            show_globals(self._namespace, file.name)
        for definition in definitions:
            module = ast.Module([definition], [])
            exec(compile(module, file.name, "exec"), self._namespace)

    def finish(self, instead: Instead | None) -> None:
        """Make the function values of global functions, and the function to start with."""
        for planned in self._program.plan.by_global.values():
            name = self._program.name(planned)
            if instead is not None:
                self._namespace[name] = instead(planned.name, self._namespace[name])
            if planned.is_deep:
                plain, steps = self._namespace[name], self._namespace[f"{name}__steps"]
                self._namespace[f"{name}__value"] = DeepFunction(plain, steps)
        self.function = self._started = self._namespace[self._program.name(self._entry)]
        if self._program.deep_values or self._entry.is_deep:
            self.function = self._deep_entry(self.function)

    def direct(self, fallback: Run) -> Direct | None:
        """Return the calls of the entry, if a backend runs it whole; `fallback` does those that
        this cannot."""
        started = self._started
        return started.direct(fallback) if isinstance(started, RunsWhole) else None

    def settled(self, host: Sequence[Any]) -> Callable[..., Any] | None:
        """Return the entry for host values whose tensors are of the classes, shapes and strides of
        those in `host`, if a backend does all of it: the backend looks at them no more, and torch
        could record nothing. None as long as there is no such function."""
        name = self._only_call
        called = None if name is None else self._namespace[name]
        if name is None or not isinstance(called, RunsSettled):
            return None
        try:
            self._calling(name, _passed)(*host)
        except _PassedError as found:
            run = called.settled(found.args)
            return None if run is None else self._calling(name, run)
        return None

    def _calling(self, name: str, called: Callable[..., Any]) -> Callable[..., Any]:
        """Return the entry with another function in the place of the one that it calls."""
        return FunctionType(self.function.__code__, {**self._namespace, name: called})

    @cached_property
    def _only_call(self) -> str | None:
        """The name of the function that the entry calls, if all else that it does is to take tuples
        apart and to make some; None otherwise."""
        is_plain = isinstance(self.function, FunctionType) and not self._entry.is_deep
        if not is_plain or self._program.deep_values or self.is_debugged:
            return None
        blocks, end = spine(self._entry.function.body)
        values = [*(b.value for block in blocks for b in block.bindings), end]
        match [v for v in values if not _calls_nothing(v)]:
            case [Call(GlobalVar(name))] if name in self._program.plan.by_global:
                return self._program.name(self._program.plan.by_global[name])
            case _:
                return None

    def _deep_entry(self, function: Any) -> Any:
        types = [type_of(p) for p in self._entry.function.params]
        budget = (DEPTH,) if self._entry.is_deep else ()
        return lambda *args: function(*map(_deep_argument, args, types), *budget)

    def __call__(self, *args: Any) -> Any:
        """Return the value of the entry at run-time values."""
        try:
            if self._entry.function.assumptions:
                check_assumptions(self._entry.function, args)
            if not torch.is_grad_enabled():
                return as_typed(self._run, args)
            return unrecorded(as_typed, self._run, args)
        except RunError:
            raise
        except Exception as error:
            raise self.located(error) from None

    def _run(self, args: tuple[Any, ...]) -> Any:
        if not self.is_bare or is_transformed():
            return self.function(*args)
        with UNWATCHED():
            return self.function(*args)

    def located(self, error: Exception) -> Exception:
        """Return the error with the user's place, its traceback only the generated frames."""
        if isinstance(error, FailedInside):
            return located_inside(error)
        frames = [t for t in _frames(error) if t.tb_frame.f_globals.get(_OWNER) is self]
        if not frames:
            return error
        traceback: TracebackType | None = None
        for frame in reversed(frames):
            traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        span = self._span(frames[-1])
        return located(error, span, self._call_at(span)).with_traceback(traceback)

    def _call_at(self, span: Span) -> Call | None:
        """Return the call at a place that a failure may say more about."""
        bodies = (post_order(p.function) for p in self._program.plan.by_global.values())
        nodes = (node for nodes in bodies for node in nodes)
        return next((n for n in nodes if tells_more(n) and n.span == span), None)

    def _span(self, frame: TracebackType) -> Span:
        code = frame.tb_frame.f_code
        file = self._files[code.co_filename]
        if not file.text:
            return NOWHERE
        positions = list(code.co_positions())
        line, end_line, column, end_column = positions[frame.tb_lasti // 2]
        if line is None or end_line is None or column is None or end_column is None:
            return NOWHERE
        return Span(file, file.offset(line, column), file.offset(end_line, end_column))


def _calls_nothing(value: Expr) -> bool:
    """Return whether a value is a part of others, is made of them, or is a constant."""
    match value:
        case Constant() | Function() | GlobalVar() | RefRead() | Tuple() | TupleGet() | Var():
            return True
        case Match(clauses=(Clause(guard=None, body=Var()),)):
            return True
        case _:
            return False


def _deep_argument(value: Any, ty: Type) -> Any:
    """Return an argument with the functions in it made callable by deep code."""
    match ty:
        case FnType():
            return deep_function(value)
        case TupleType(fields):
            return tuple(_deep_argument(v, t) for v, t in zip(value, fields, strict=True))
        case _:
            return value


class _PassedError(Exception):
    """The arguments that a function was called with, which it did not run on."""


def _passed(*args: Any) -> Any:
    raise _PassedError(*args)


def _frames(error: Exception) -> list[TracebackType]:
    found: list[TracebackType] = []
    traceback = error.__traceback__
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found
