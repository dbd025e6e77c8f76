"""Region functions as Python callables: the first run at some sizes decides what the others do.

The first run follows the tape of the region (`kernels.tape`) and notes what each kernel prepared;
from then on a `SizedTape` does the same without looking at any operand but the region's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeAlias, final

import torch
from torch.autograd.graph import increment_version

from ...interrupts import uninterrupted
from ...ir.dims import Dim
from ...kernels.arena import Allocation, placed
from ...kernels.backend import RegionFunction
from ...kernels.calling import Sizes
from ...kernels.operands import is_shared, key_of
from ...kernels.reading import shape_of
from ...kernels.tape import (
    CallStep,
    KernelStep,
    PartStep,
    SizeStep,
    Step,
    Tape,
    TupleStep,
    ViewStep,
    run_tape,
    used_by,
)
from .launch import MOST_SHAPES, KernelCall
from .prepare import Prepared, Storage
from .tape import ALIGNMENT, KernelLaunches, SizedStep, SizedTape, Slot, TorchCall

Callee: TypeAlias = Callable[..., Any]


@final
class RegionCall:
    """A region function of a program on one device.

    `callee` returns the kernels and functions that it calls, `plain` does the same as calls of
    these, and does it where a parameter that the region writes to lies in the storage of another.
    Raises what they raise.
    """

    def __init__(
        self,
        region: RegionFunction,
        tape: Tape,
        callee: Callable[[str], Callee],
        plain: Callee,
        device: torch.device,
    ) -> None:
        self.function: Final = region.function
        self.tape: Final = tape
        self._callee: Final = callee
        self.plain: Final = plain
        self._device: Final = device
        self._written: Final = region.overwritten
        self._types: Final = tape.types[: tape.params]
        self._tapes: Final[dict[tuple[Any, ...], SizedTape]] = {}
        self._apart: tuple[Any, ...] = ()
        """The sizes and addresses of arguments that were last found to share nothing."""

    def __call__(self, *args: Any) -> Any:
        """Return the result of the region; Ctrl-C waits for its last launch if it writes."""
        return uninterrupted(self._run, *args) if self._written else self._run(*args)

    def _run(self, *args: Any) -> Any:
        key = key_of(args, self._types)
        if self._written and self._is_shared(key, args):
            return self.plain(*args)
        sized = self._tapes.get(key)
        if sized is not None:
            result = sized.run(args)
            if self._written:
                increment_version([args[n] for n in self._written])
            return result
        first = _FirstRun(self.tape, self._callee, Sizes(zip(self._types, args, strict=True)))
        result = run_tape(self.tape, args, first.call, first.size)
        if len(self._tapes) >= MOST_SHAPES:
            del self._tapes[next(iter(self._tapes))]
        self._tapes[key] = _Sizing(self.tape, first).tape(self._device)
        return result

    def _is_shared(self, key: tuple[Any, ...], args: Sequence[Any]) -> bool:
        lying = (key, [a.data_ptr() for a in args if isinstance(a, torch.Tensor)])
        if lying == self._apart:
            return False
        if is_shared(args, self._written):
            return True
        self._apart = lying
        return False


@final
class _FirstRun:
    """The calls of a run at some sizes, and what is to be known of them afterwards."""

    def __init__(self, tape: Tape, callee: Callable[[str], Callee], sizes: Sizes) -> None:
        self._callee: Final = callee
        self.kernels: Final[dict[KernelStep, Prepared]] = {}
        self.functions: Final[dict[KernelStep | CallStep, Callee]] = {}
        self.strides: Final[dict[int, Any]] = {}
        """The strides of what functions returned; for a tuple those of its parts."""
        self.size: Final[Callable[[Dim], int]] = sizes.value

    def call(self, step: KernelStep | CallStep, operands: list[Any]) -> Any:
        """Return the result of a call."""
        callee = self._callee(step.name)
        if isinstance(step, KernelStep) and isinstance(callee, KernelCall):
            prepared = callee.prepared(operands)
            if prepared is not None and not prepared.in_torch:
                self.kernels[step] = prepared
                return callee(*operands)
        self.functions[step] = callee
        found = callee(*operands)
        strides = _strides(found)
        if isinstance(step, CallStep):
            self.strides[step.result] = strides
        else:
            parts = strides if step.is_tuple else (strides,)
            self.strides.update(zip(step.results, parts, strict=True))
        return found


def _strides(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_strides(v) for v in value])
    return value.stride() if isinstance(value, torch.Tensor) else None


@final
class _Sizing:
    """The tape of a region at certain sizes, made of what its first run noted."""

    def __init__(self, tape: Tape, first: _FirstRun) -> None:
        self._tape: Final = tape
        self._first: Final = first
        self._values = len(tape.types)
        self._bytes = 0
        launched = [s for s in tape.steps if s in first.kernels]
        others = [s for s in tape.steps if s not in first.kernels]
        self._read: Final = {n for s in launched for n in used_by(s)}
        """The values that kernels read."""
        self._needed: Final = {n for s in others for n in used_by(s)} | {tape.result}
        """The values that Python must have: operands of calls, fields of tuples, the result."""
        self._offsets: Final = self._divided()
        self._slots_end: Final = self._bytes

    def tape(self, device: torch.device) -> SizedTape:
        """Return the tape."""
        steps = tuple(made for step in self._tape.steps for made in self._sized(step))
        return SizedTape(steps, self._values, self._tape.result, self._bytes, device)

    def _divided(self) -> dict[int, int]:
        """Divide the arena; return where the values begin that have a slot."""
        blocks: dict[int, Allocation] = {}
        for step, prepared in self._first.kernels.items():
            for number, position in zip(step.results, _positions(prepared), strict=True):
                if number in self._tape.lives:
                    room = prepared.storage[position].bytes
                    blocks[number] = Allocation(_aligned(room), *self._tape.lives[number])
        begins, self._bytes = placed(tuple(blocks.values()))
        return dict(zip(blocks, begins, strict=True))

    def _sized(self, step: Step) -> tuple[SizedStep, ...]:
        match step:
            case KernelStep() if step in self._first.kernels:
                return (self._launched(step, self._first.kernels[step]),)
            case KernelStep(is_tuple=True):
                return self._taken_apart(step)
            case KernelStep(results=(result,)) | CallStep(result=result):
                return (self._called(self._first.functions[step], step, result),)
            case ViewStep():
                return (self._called(self._reshaping(step.result), step, step.result),)
            case TupleStep():
                return (self._called(lambda *fields: fields, step, step.result),)
            case PartStep(whole, field):
                strides = self._first.strides.get(whole)
                if strides is not None:
                    self._first.strides[step.result] = strides[field]
                return (self._called(itemgetter(field), step, step.result),)
            case SizeStep():
                value = self._first.size(step.dim)
                return (self._called(partial(int, value), step, step.result),)
            case _:
                raise AssertionError(step)

    def _called(self, function: Callee, step: Step, result: int) -> TorchCall:
        return TorchCall(function, used_by(step), result, self._strides(result), step.dead)

    def _reshaping(self, number: int) -> Callee:
        shape = tuple(map(self._first.size, shape_of(self._tape.types[number])))
        return lambda value: value.view(shape)

    def _strides(self, number: int) -> tuple[int, ...] | None:
        """Return the strides of a value of torch's, where kernels rely on them."""
        return self._first.strides.get(number) if number in self._read else None

    def _taken_apart(self, step: KernelStep) -> tuple[TorchCall, ...]:
        """Return the call of a kernel that runs as calls of torch, and the parts of its result."""
        whole = self._number() if step.whole is None else step.whole
        called = TorchCall(self._first.functions[step], step.operands, whole, None, ())
        parts = (
            TorchCall(itemgetter(field), (whole,), number, self._strides(number), ())
            for field, number in enumerate(step.results)
        )
        dead = step.dead if step.whole is not None else (*step.dead, whole)
        *before, last = (called, *parts)
        return (*before, replace(last, dead=dead))

    def _launched(self, step: KernelStep, prepared: Prepared) -> KernelLaunches:
        """Return kernels that run at addresses: a value has a slot, is new storage, or, if nothing
        uses it, lies behind the slots with what the kernels need for themselves."""
        at = dict(zip(_positions(prepared), step.results, strict=True))
        numbers = list(step.operands)
        slots: list[Slot] = []
        fresh: list[tuple[int, Storage]] = []
        scratch = self._slots_end
        for position, storage in enumerate(prepared.storage):
            result = at.get(position)
            number = self._number() if result is None else result
            numbers.append(number)
            is_used = number in self._needed or number in self._read
            if number in self._offsets:
                is_tensor = number in self._needed
                slots.append(Slot(number, self._offsets[number], storage, is_tensor))
            elif result is not None and (is_used or step.whole is not None):
                fresh.append((number, storage))
            else:
                slots.append(Slot(number, scratch, storage, is_tensor=False))
                scratch += _aligned(storage.bytes)
        self._bytes = max(self._bytes, scratch)
        launches = tuple(launch.placed(numbers) for launch in prepared.launches)
        whole = None if step.whole is None else (step.whole, step.results)
        return KernelLaunches(launches, tuple(slots), tuple(fresh), whole, step.dead)

    def _number(self) -> int:
        """Return the number of a new value."""
        self._values += 1
        return self._values - 1


def _positions(prepared: Prepared) -> tuple[int, ...]:
    """Return the positions of the results in the storage of a call."""
    return prepared.results if isinstance(prepared.results, tuple) else (prepared.results,)


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT
