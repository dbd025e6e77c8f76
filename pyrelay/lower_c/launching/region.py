"""Region functions as Python callables: a piece of C, or several with calls of torch in between.

A call looks at the shapes and strides of its arguments. What follows from them is prepared once:
the C for the forms of the operands, the integers that are passed, the shapes of results, and where
in the arena the values of the memory plan lie. Then a call fills in addresses, and calls C.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias, final

import torch

from ...ir.dims import Dim
from ...ir.expr import type_of
from ...ir.types import DType, TensorType, Type, is_float
from ...kernels.backend import KernelFunction
from ...kernels.calling import Form, Layout, Sizes, Stride
from ...kernels.operands import WIDE, form_of, is_number, is_shared, key_of, unit_of
from ...kernels.tape import (
    CallStep,
    KernelStep,
    PartStep,
    SizeStep,
    Step,
    Tape,
    TupleStep,
    used_by,
)
from ..building import Library, Source, build_or_notify
from ..math import host_target
from ..text.region import Integer, Piece, RegionText, region_text
from .threads import parallel_address

MOST_SHAPES: Final = 256
"""A region keeps what follows from so many combinations of shapes and strides at most."""

_ALIGNMENT: Final = 64
_KEPT_ARENA: Final = 256 << 20
"""An arena of more bytes is given back after each call."""

Callee: TypeAlias = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class _Shaped:
    """A tensor as far as sizes are found by it."""

    shape: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class _Storage:
    """A value that C makes: where it lies in the arena, if it does, else a tensor of its own.
    `is_tensor` says that torch reads it."""

    number: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int | None
    is_tensor: bool


@final
@dataclass(frozen=True, slots=True)
class _Run:
    """A piece of C at certain sizes: what it makes, and the tensors that it reads."""

    function: Any
    reads: tuple[int, ...]
    makes: tuple[_Storage, ...]


_Action: TypeAlias = "_Run | Step"


@final
@dataclass(frozen=True, slots=True)
class _Prepared:
    """A region at certain sizes: its actions in order, and what is passed to all its pieces."""

    actions: tuple[_Action, ...]
    integers: Any
    numbers: tuple[tuple[int, bool], ...]
    """The values that are Python numbers, and whether each is a float."""
    arena: int
    count: int
    sizes: Callable[[Dim], int]


class _State(ctypes.Structure):
    """What C knows of the run that it is in: `relay_run` in its text."""

    _fields_ = (
        ("parallel", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("failed", ctypes.c_int64),
    )


class _Local(threading.local):
    """The arena of a thread, which the regions that run in it use one after another."""

    arena: torch.Tensor | None = None


_LOCAL: Final = _Local()


@final
class RegionCall:
    """A region function of a program on a CPU.

    `callee` returns the kernels and functions that it calls, `plain` does the same as calls of
    these: where a parameter that the region writes to lies in the storage of another, where C
    cannot be built, and where a kernel failed, so that torch raises the error.
    """

    def __init__(
        self,
        tape: Tape,
        kernels: Mapping[str, KernelFunction],
        written: Sequence[int],
        callee: Callable[[str], Callee],
        plain: Callee,
        name: str,
    ) -> None:
        self.tape: Final = tape
        self.kernels: Final = kernels
        self._written: Final = tuple(written)
        self._callee: Final = callee
        self._plain: Final = plain
        self.name: Final = name
        self.types: Final = tape.types[: tape.params]
        self.texts: Final[dict[tuple[Layout, ...], tuple[RegionText, Any] | None]] = {}
        self._prepared: Final[dict[tuple[Any, ...], _Prepared | None]] = {}
        self._apart: tuple[Any, ...] = ()

    def __call__(self, *args: Any) -> Any:
        """Return the result of the region."""
        key = key_of(args, self.types)
        try:
            prepared = self._prepared[key]
        except KeyError:
            prepared = self._keep(key, args)
        if prepared is None or (self._written and self._is_shared(key, args)):
            return self._plain(*args)
        return self._run(prepared, args)

    def _keep(self, key: tuple[Any, ...], args: Sequence[Any]) -> _Prepared | None:
        if len(self._prepared) >= MOST_SHAPES:
            del self._prepared[next(iter(self._prepared))]
        found = self._prepared[key] = _Preparing(self, args).prepared()
        return found

    def _is_shared(self, key: tuple[Any, ...], args: Sequence[Any]) -> bool:
        lying = (key, [a.data_ptr() for a in args if not is_number(a)])
        if lying == self._apart:
            return False
        if is_shared(args, self._written):
            return True
        self._apart = lying
        return False

    def _run(self, prepared: _Prepared, args: Sequence[Any]) -> Any:
        values: list[Any] = [*args, *[None] * (len(self.tape.types) - len(args))]
        at = (ctypes.c_void_p * prepared.count)()
        numbers = (ctypes.c_double * len(prepared.numbers))()
        state = _State(parallel_address(), torch.get_num_threads(), 0)
        arena = _taken(prepared.arena)
        base = 0 if arena is None else arena.data_ptr()
        for action in prepared.actions:
            match action:
                case _Run(function, reads, makes):
                    for place, (number, is_float) in enumerate(prepared.numbers):
                        _put(numbers, place, values[number], is_float)
                    for number in reads:
                        at[number] = values[number].data_ptr()
                    for made in makes:
                        at[made.number] = _opened(made, base, arena, values)
                    given = (ctypes.byref(state), at, prepared.integers, numbers)
                    if function(*given):
                        del values, arena
                        return self._plain(*args)
                case _:
                    self._step(action, values, prepared.sizes)
        return () if self.tape.result is None else values[self.tape.result]

    def _step(self, step: Step, values: list[Any], size: Callable[[Dim], int]) -> None:
        match step:
            case KernelStep(results=results):
                found = self._callee(step.name)(*[values[o] for o in step.operands])
                parts = found if step.is_tuple else (found,)
                for number, value in zip(results, parts, strict=True):
                    values[number] = value
                if step.whole is not None:
                    values[step.whole] = found
            case CallStep():
                found = self._callee(step.name)(*[values[o] for o in step.operands])
                if isinstance(found, torch.Tensor):
                    found = found.contiguous()
                values[step.result] = found
            case TupleStep():
                values[step.result] = tuple([values[f] for f in step.fields])
            case PartStep():
                found = values[step.whole][step.field]
                values[step.result] = (
                    found.contiguous() if isinstance(found, torch.Tensor) else found
                )
            case SizeStep():
                values[step.result] = size(step.dim)


def _put(numbers: Any, place: int, value: Any, is_float: bool) -> None:
    if is_float:
        numbers[place] = value
    else:
        ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))[place] = int(value)


def _taken(count: int) -> torch.Tensor | None:
    """Return an arena of at least so many bytes, None for none."""
    if not count:
        return None
    kept = _LOCAL.arena
    if kept is None or kept.numel() < count:
        kept = torch.empty(count + _ALIGNMENT, dtype=torch.uint8)
        if count <= _KEPT_ARENA:
            _LOCAL.arena = kept
    return kept


def _opened(made: _Storage, base: int, arena: torch.Tensor | None, values: list[Any]) -> int:
    """Return the address of a value that C makes."""
    if made.offset is None:
        tensor = values[made.number] = torch.empty(made.shape, dtype=made.dtype)
        return tensor.data_ptr()
    if made.is_tensor:
        assert arena is not None
        size = made.dtype.itemsize
        for length in made.shape:
            size *= length
        room = arena[made.offset : made.offset + size]
        values[made.number] = room.view(made.dtype).view(made.shape)
    return base + made.offset


@final
class _Preparing:
    """The preparation of a region for the arguments of a call."""

    def __init__(self, call: RegionCall, args: Sequence[Any]) -> None:
        self._call: Final = call
        self._tape: Final = call.tape
        self._args: Final = args
        self._sizes: Final = Sizes(zip(call.types, args, strict=True))
        self._values: Final[dict[int, Any]] = dict(enumerate(args))
        self._bytes = 0
        self._own_sizes: Final[dict[int, Sizes]] = {}

    def prepared(self) -> _Prepared | None:
        """Return the region at the sizes of its arguments; None where it is left to torch."""
        try:
            self._find_values()
        except KeyError:
            return None  # a size is known only when torch has computed a value
        steps = enumerate(self._tape.steps)
        layouts = {n: self._layout(s) for n, s in steps if isinstance(s, KernelStep)}
        key = tuple(layouts.values())
        texts = self._call.texts
        if key not in texts:
            texts[key] = self._built(layouts)
        found = texts[key]
        return None if found is None else self._with(*found)

    def _find_values(self) -> None:
        """Find the shapes of values, and the integers among them. Raises KeyError."""
        for number, ty in enumerate(self._tape.types):
            if number not in self._values and isinstance(ty, TensorType):
                shape = tuple(map(self._sizes.value, ty.shape))
                self._values[number] = _Shaped(shape)
        for step in self._tape.steps:
            if isinstance(step, SizeStep):
                self._values[step.result] = self._sizes.value(step.dim)

    def _layout(self, step: KernelStep) -> Layout:
        """Return how the operands of a kernel lie in memory: what C or torch makes in a region lies
        row by row."""
        operands = [self._values[o] for o in step.operands]
        shapes = [self._values[v].shape for v in step.results]
        shapes += [o.shape for o in operands if not is_number(o)]
        is_wide = any(prod(shape) >= WIDE for shape in shapes)
        forms = tuple(map(_form, operands))
        if Form.STRIDED not in forms:
            return Layout(forms, is_wide)
        units = (None if isinstance(o, _Shaped) else unit_of(o) for o in operands)
        return Layout(forms, is_wide, tuple(units))

    def _built(self, layouts: dict[int, Layout]) -> tuple[RegionText, Any] | None:
        text = region_text(self._tape, self._call.kernels, layouts, host_target())
        if not text.pieces:
            return None
        libraries = build_or_notify([Source(text.text, self._call.name)])
        return None if libraries is None else (text, libraries[0])

    def _with(self, text: RegionText, library: Any) -> _Prepared:
        """Return the region with its C."""
        tape = self._tape
        pieces = {step: piece for piece in text.pieces for step in piece.steps}
        in_c = set(pieces)
        others = [s for n, s in enumerate(tape.steps) if n not in in_c]
        needed = {v for s in others for v in used_by(s)} | {tape.result}
        for number in in_c:
            step = tape.steps[number]
            if isinstance(step, KernelStep) and step.whole is not None:
                needed.update(step.results)
        made = self._storage(in_c, needed)
        actions: list[_Action] = []
        done: set[str] = set()
        for number, step in enumerate(tape.steps):
            piece = pieces.get(number)
            if piece is None:
                actions.append(step)
                continue
            if piece.name not in done:
                done.add(piece.name)
                actions += [
                    s
                    for s in tape.steps[number : piece.steps[-1]]
                    if isinstance(s, PartStep | SizeStep)
                ]
                actions.append(self._run(text, library, piece, made))
            assert isinstance(step, KernelStep)
            if step.whole is not None:
                actions.append(TupleStep(step.results, step.whole))
        integers = [self._integer(i) for i in text.integers]
        numbers = tuple((n, _is_float(tape.types[n])) for n in text.numbers)
        return _Prepared(
            tuple(actions),
            (ctypes.c_int64 * len(integers))(*integers),
            numbers,
            self._bytes,
            len(tape.types) + len(text.scratch),
            self._sizes.value,
        )

    def _storage(
        self, in_c: Collection[int], needed: Collection[int | None]
    ) -> dict[int, _Storage]:
        """Return where the values of the kernels in C are stored."""
        tape = self._tape
        slots: dict[int, int] = {}
        made: list[int] = []
        for number in sorted(in_c):
            step = tape.steps[number]
            assert isinstance(step, KernelStep)
            made += step.results
        for value in made:
            slot = tape.slots.get(value)
            if slot is not None:
                slots[slot] = max(slots.get(slot, 0), self._room(value))
        begins: dict[int, int] = {}
        for slot, room in slots.items():
            begins[slot] = self._bytes
            self._bytes += -(-room // _ALIGNMENT) * _ALIGNMENT
        found: dict[int, _Storage] = {}
        for value in made:
            slot = tape.slots.get(value)
            offset = None if slot is None else begins[slot]
            found[value] = _Storage(
                value, self._values[value].shape, self._dtype(value), offset, value in needed
            )
        return found

    def _dtype(self, value: int) -> torch.dtype:
        ty = self._tape.types[value]
        assert isinstance(ty, TensorType)
        assert isinstance(ty.dtype, DType)
        return getattr(torch, ty.dtype.name)

    def _room(self, value: int) -> int:
        return prod(self._values[value].shape) * self._dtype(value).itemsize

    def _run(
        self, text: RegionText, library: Library, piece: Piece, made: dict[int, _Storage]
    ) -> _Run:
        steps = [s for n in piece.steps if isinstance(s := self._tape.steps[n], KernelStep)]
        makes = tuple(made[r] for s in steps for r in s.results)
        inside = {m.number for m in makes}
        used = dict.fromkeys(o for s in steps for o in s.operands if o not in inside)
        reads = tuple(
            o for o in used if not is_number(self._values[o]) and o not in self._in_arena(made)
        )
        function = library.function(piece.name, [ctypes.c_void_p] * 4, ctypes.c_int64)
        return _Run(function, reads, makes)

    def _in_arena(self, made: dict[int, _Storage]) -> Collection[int]:
        return {m.number for m in made.values() if m.offset is not None}

    def _integer(self, integer: Integer) -> int:
        step = self._tape.steps[integer.step]
        assert isinstance(step, KernelStep)
        operands = [self._values[o] for o in step.operands]
        if isinstance(integer.argument, Stride):
            operand = operands[integer.argument.operand]
            return operand.stride()[integer.argument.axis]
        if integer.step not in self._own_sizes:
            params = self._call.kernels[step.name].function.params
            pairs = zip(map(type_of, params), operands, strict=True)
            self._own_sizes[integer.step] = Sizes(pairs)
        return self._own_sizes[integer.step].value(integer.argument.dim)


def _form(operand: Any) -> Form:
    return Form.CONTIGUOUS if isinstance(operand, _Shaped) else form_of(operand)


def _is_float(ty: Type) -> bool:
    return isinstance(ty, TensorType) and is_float(ty.dtype)
