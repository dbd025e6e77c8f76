"""Tapes: the launch plan of a region, as steps over numbered values.

A region in the form of `fusion.segments` only calls kernels, and functions that call torch, and
takes tuples apart. Its *tape* says which, in order, without variables: the parameters are the first
values, and each step makes others. A function that only gives what a kernel stored another shape is
no call: both values lie in one place. Nothing in a tape depends on sizes or on a device, so a
backend may run it as it stands (`run_tape`), specialise it to sizes, or write it as one function of
its own.

Values that do not outlive a run have a *slot* of the memory plan. What a kernel stores and nothing
else holds may lie there; two values of one slot are never needed at the same time. Where sizes are
known, the calls of kernels between which a value is needed give it a place in an arena.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeAlias, assert_never, final

from ..dataclass import dataclass
from ..ir.dims import Dim
from ..ir.expr import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    Tuple,
    TupleGet,
    Var,
    is_unit,
    type_of,
)
from ..ir.types import TupleType, Type
from ..operators.host.sizes import size
from .early_updates import in_order
from .fusion.nodes import mentioned
from .memory import MemoryPlan
from .reading import reshaped_operand, shape_of, straight_line


@final
@dataclass(frozen=True, slots=True, eq=False)
class KernelStep:
    """The call of a kernel by its name: `results` are the values that it stores. `whole` is the
    value that is the tuple of them, if they are one that something uses as a tuple."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    is_tuple: bool
    whole: int | None
    dead: tuple[int, ...] = ()
    """The values that no later step uses, of each step."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CallStep:
    """The call of a function that calls torch, by its name."""

    name: str
    operands: tuple[int, ...]
    result: int
    dead: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """A value with the elements of one that a kernel stored, row by row, under another shape."""

    operand: int
    result: int
    dead: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class TupleStep:
    """A tuple of values."""

    fields: tuple[int, ...]
    result: int
    dead: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartStep:
    """A field of a tuple that a call of torch made."""

    whole: int
    field: int
    result: int
    dead: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class SizeStep:
    """The value of a size, as an integer."""

    dim: Dim
    result: int
    dead: tuple[int, ...] = ()


Step: TypeAlias = KernelStep | CallStep | ViewStep | TupleStep | PartStep | SizeStep


@final
@dataclass(frozen=True, eq=False)
class Tape:
    """The steps of a region.

    `types` are the types of the values, those of the parameters first, `names` their names in the
    program; `result` is the value that the region returns, None where it is the empty tuple.
    `slots` gives the slots of values, by the bytes of each slot in `sizes`, and `lives` the
    first and the last call of a kernel, counted from 0, that need such a value.
    """

    steps: tuple[Step, ...]
    types: tuple[Type, ...]
    names: tuple[str, ...]
    params: int
    result: int | None
    slots: Mapping[int, int]
    sizes: tuple[Dim, ...]
    lives: Mapping[int, tuple[int, int]]

    @cached_property
    def viewed(self) -> Mapping[int, int]:
        """The values that kernels store, by the views of them."""
        found: dict[int, int] = {}
        for step in self.steps:
            if isinstance(step, ViewStep):
                found[step.result] = found.get(step.operand, step.operand)
        return found


def used_by(step: Step) -> tuple[int, ...]:
    """Return the values that a step reads."""
    match step:
        case KernelStep(operands=operands) | CallStep(operands=operands):
            return operands
        case TupleStep(fields):
            return fields
        case PartStep(whole):
            return (whole,)
        case ViewStep(operand):
            return (operand,)
        case SizeStep():
            return ()
        case _:
            assert_never(step)


def made_by(step: Step) -> tuple[int, ...]:
    """Return the values that a step makes."""
    if not isinstance(step, KernelStep):
        return (step.result,)
    return step.results if step.whole is None else (*step.results, step.whole)


def only_reshapes(function: Function) -> bool:
    """Return whether a function returns its parameter under another shape."""
    bindings, end = straight_line(function.body)
    match bindings, function.params:
        case [Binding(var, value)], (param,):
            return reshaped_operand(value) == param and end == var
        case _:
            return False


def tape_of(
    region: Function, plan: MemoryPlan, kernels: Collection[str], reshaping: Collection[str] = ()
) -> Tape | None:
    """Return the tape of a region; None where it does something else than tapes have steps for, or
    takes tuples. `reshaping` are functions that only reshape."""
    bindings, end = straight_line(region.body)
    has_tuples = any(isinstance(type_of(p), TupleType) for p in region.params)
    if has_tuples or not all(_has_step(b.value) for b in bindings):
        return None
    if not isinstance(end, Var) and not is_unit(end):
        return None
    ordered = in_order(bindings, plan.early)
    return _Recorder(region, plan, kernels, reshaping).tape(ordered, end)


def _has_step(value: Expr) -> bool:
    match value:
        case Call(GlobalVar(), args) | Tuple(args):
            return all(isinstance(a, Var) for a in args)
        case Call(callee):
            return callee is size
        case TupleGet(whole):
            return isinstance(whole, Var)
        case _:
            return False


@final
class _Recorder:
    """Numbers the values of a region while its bindings become steps."""

    def __init__(
        self,
        region: Function,
        plan: MemoryPlan,
        kernels: Collection[str],
        reshaping: Collection[str],
    ) -> None:
        self._plan: Final = plan
        self._kernels: Final = kernels
        self._reshaping: Final = reshaping
        self._stored: Final[set[int]] = set()
        """The values that kernels store, and views of them."""
        self._params: Final = region.params
        self._types: Final[list[Type]] = []
        self._names: Final[list[str]] = []
        self._numbers: Final[dict[Expr, int]] = {}
        self._parts: Final[dict[Expr, tuple[int, ...]]] = {}
        """For each tuple that a kernel makes the values in it."""
        for param in region.params:
            self._numbers[param] = self._new(type_of(param), param)

    def tape(self, bindings: Sequence[Binding], end: Expr) -> Tape:
        """Return the tape."""
        used = (b.value for b in bindings if not isinstance(b.value, TupleGet))
        wholes = {end, *(v for value in used for v in mentioned(value))}
        steps = [s for b in bindings if (s := self._step(b, b.var in wholes)) is not None]
        result = self._numbers.get(end)
        tuples = (s for s in steps if isinstance(s, KernelStep) and s.whole is not None)
        fields = {n for s in tuples for n in s.results}
        numbers = ((v, self._numbers.get(v)) for v in self._plan.slots)
        planned = {v: n for v, n in numbers if n is not None and n not in fields}
        slots = {n: self._plan.slots[v] for v, n in planned.items()}
        lives = {n: self._plan.lives[v] for v, n in planned.items()}
        timed = _with_deaths(steps, len(self._params), result)
        types = tuple(self._types)
        names = tuple(self._names)
        sizes = self._plan.sizes
        return Tape(timed, types, names, len(self._params), result, slots, sizes, lives)

    def _new(self, ty: Type, var: Var) -> int:
        self._types.append(ty)
        self._names.append(var.name)
        return len(self._types) - 1

    def _step(self, binding: Binding, is_whole: bool) -> Step | None:
        var, ty = binding.var, type_of(binding.var)
        match binding.value:
            case Call(GlobalVar(name), args) if name in self._kernels:
                operands = tuple(self._numbers[a] for a in args)
                if not isinstance(ty, TupleType):
                    self._numbers[var] = self._new(ty, var)
                    self._stored.add(self._numbers[var])
                    return KernelStep(name, operands, (self._numbers[var],), False, None)
                parts = self._parts[var] = tuple([self._new(t, var) for t in ty.fields])
                self._stored.update(parts)
                whole = self._new(ty, var) if is_whole else None
                if whole is not None:
                    self._numbers[var] = whole
                return KernelStep(name, operands, parts, True, whole)
            case TupleGet(whole, field) if whole in self._parts:
                self._numbers[var] = self._parts[whole][field]
                self._names[self._numbers[var]] = var.name
                return None
            case _:
                pass
        number = self._numbers[var] = self._new(ty, var)
        match binding.value:
            case Call(GlobalVar(name), (operand,)) if self._is_view(name, operand):
                self._stored.add(number)
                return ViewStep(self._numbers[operand], number)
            case Call(GlobalVar(name), args):
                return CallStep(name, tuple(self._numbers[a] for a in args), number)
            case Tuple(fields):
                return TupleStep(tuple(self._numbers[f] for f in fields), number)
            case TupleGet(whole, field):
                return PartStep(self._numbers[whole], field, number)
            case Call(attrs=attrs):
                return SizeStep(attrs["dim"], number)
            case other:
                raise AssertionError(other)  # `_has_step` has looked

    def _is_view(self, name: str, operand: Expr) -> bool:
        return name in self._reshaping and self._numbers[operand] in self._stored


def _with_deaths(steps: Sequence[Step], params: int, result: int | None) -> tuple[Step, ...]:
    """Return steps with the values that each of them uses last."""
    last = dict.fromkeys(range(params), 0)
    for time, step in enumerate(steps):
        last |= dict.fromkeys((*used_by(step), *made_by(step)), time)
    for step in reversed(steps):
        if isinstance(step, ViewStep):  # a value lives as long as its views
            end = len(steps) if step.result == result else last[step.result]
            last[step.operand] = max(last[step.operand], end)
    dead: list[list[int]] = [[] for _ in steps]
    for number, time in last.items():
        if number != result and time < len(steps):
            dead[time].append(number)
    return tuple(replace(s, dead=tuple(d)) for s, d in zip(steps, dead, strict=True))


def _keep(made: Any, step: KernelStep, values: list[Any]) -> None:
    """Keep the results of a kernel among the values."""
    for number, value in zip(step.results, made if step.is_tuple else (made,), strict=True):
        values[number] = value
    if step.whole is not None:
        values[step.whole] = made


def run_tape(
    tape: Tape,
    args: Sequence[Any],
    call: Callable[[KernelStep | CallStep, list[Any]], Any],
    size_of: Callable[[Dim], int],
) -> Any:
    """Return the result of a region, step by step: `call` returns the result of a call, a tuple
    where it has several."""
    values: list[Any] = [*args, *[None] * (len(tape.types) - tape.params)]
    for step in tape.steps:
        match step:
            case KernelStep():
                _keep(call(step, [values[o] for o in step.operands]), step, values)
            case CallStep():
                values[step.result] = call(step, [values[o] for o in step.operands])
            case ViewStep():
                shape = map(size_of, shape_of(tape.types[step.result]))
                values[step.result] = values[step.operand].reshape(tuple(shape))
            case TupleStep():
                values[step.result] = tuple([values[f] for f in step.fields])
            case PartStep():
                values[step.result] = values[step.whole][step.field]
            case SizeStep():
                values[step.result] = size_of(step.dim)
        for number in step.dead:
            values[number] = None
    return () if tape.result is None else values[tape.result]
