"""The Python functions of a region at certain shapes: guards; addresses, calls of C and of torch.

def call(v0, v1):
    if v0.__class__ in plain_classes and v0.shape == s0 and v0.is_contiguous() and ...:
        return run(v0, v1)
    return other(v0, v1)

def run(v0, v1):
    frame = frames.pop() if frames else new()
    at = frame.at
    at[1] = v0.data_ptr()
    ...
    v2 = empty(s2, r2)
    at[3] = v2.data_ptr()
    if piece_0(frame.address):
        return plain(v0, v1)
    frames.append(frame)
    return v2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import torch

from ...dataclass import dataclass
from ...ir.types import SizeType, TensorType, is_float
from ...kernels.operands import contiguous_strides, do_overlap, is_number, spans_of
from ...kernels.tape import (
    CallStep,
    KernelStep,
    PartStep,
    SizeStep,
    Step,
    Tape,
    TupleStep,
    ViewStep,
    made_by,
    used_by,
)
from ..regions import Piece
from .frames import LARGEST_OWN, PLAIN_CLASSES, RegionFrame, arena_of, maker_of
from .prepare import Prepared

Callee: TypeAlias = Callable[..., Any]

_torch: Any = torch
_record: Final[Callable[[bool], None]] = _torch._C._set_grad_enabled  # noqa: SLF001  as `unrecorded` in border/autograd.py does
_were_written: Final = _torch._C._increment_version  # noqa: SLF001  `increment_version` takes one tensor too, in four times the time


@final
@dataclass(frozen=True, slots=True)
class ShapedCall:
    """A region at certain shapes: `guarded` looks whether its arguments have them, `run` does not.
    With `is_alone`, C does all of it, of which torch neither records nor sees anything."""

    guarded: Callee
    run: Callee
    is_alone: bool


def call_of(
    prepared: Prepared,
    tape: Tape,
    args: Sequence[Any],
    callee: Callable[[str], Callee],
    plain: Callee,
    other: Callee,
    written: Sequence[int],
) -> ShapedCall:
    """Return the functions of a region made ready for arguments: `plain` does the same by calls of
    torch, also where one of the arguments `written` lies where another does; `other` takes
    arguments of other shapes."""
    return _RegionWriter(prepared, tape, callee).function(args, plain, other, written)


@final
class _RegionWriter:
    def __init__(self, prepared: Prepared, tape: Tape, callee: Callable[[str], Callee]) -> None:
        self._prepared: Final = prepared
        self._tape: Final = tape
        self._callee: Final = callee
        self._lines: Final[list[str]] = []
        self._addresses: Final[dict[int, str]] = {}
        """The names of the addresses of values that are at hand."""
        self._is_alone = True
        self._known: Final[dict[str, Any]] = {"plain_classes": PLAIN_CLASSES}
        steps = tape.steps
        pieces = prepared.text.pieces
        self._in_c: Final = frozenset(n for piece in pieces for n in piece.steps)
        in_c = [s for n in self._in_c if isinstance(s := steps[n], KernelStep)]
        self._read_by_c: Final = frozenset(v for s in in_c for v in s.operands)
        others = [s for n, s in enumerate(steps) if n not in self._in_c]
        wholes = [v for s in in_c if s.whole is not None for v in s.results]
        needed = {tape.result, *wholes}
        for step in reversed(others):
            is_view = isinstance(step, ViewStep) and step.result in prepared.text.viewed
            if not is_view or not needed.isdisjoint(made_by(step)):
                needed.update(used_by(step))
        self._needed: Final = frozenset(needed)
        """The values that Python must have as tensors."""

    def function(
        self, args: Sequence[Any], plain: Callee, other: Callee, written: Sequence[int]
    ) -> ShapedCall:
        """Return the functions."""
        known = self._known
        names = ", ".join(f"v{n}" for n in range(len(args)))
        known |= {"plain": _unrecorded(plain), "other": other}
        guards = [g for n, a in enumerate(args) for g in self._guards(n, a)]
        self._body(args, names, written)
        lines = [f"def run({names}):", *(f"    {line}" for line in self._lines)]
        if guards:
            lines += [
                f"def call({names}):",
                f"    if {' and '.join(guards)}:",
                f"        return run({names})",
                f"    return other({names})",
            ]
        exec(compile("\n".join(lines), "<calls of a region in C>", "exec"), known)
        return ShapedCall(known["call" if guards else "run"], known["run"], self._is_alone)

    def _body(self, args: Sequence[Any], names: str, written: Sequence[int]) -> None:
        """Write the function that looks at nothing."""
        prepared, known = self._prepared, self._known
        frames: list[RegionFrame] = []
        count = len(self._tape.types) + len(prepared.text.scratch)
        has_own = prepared.arena <= LARGEST_OWN and prepared.offsets.keys().isdisjoint(self._needed)
        room = prepared.arena if has_own else 0
        known["frames"] = frames
        known["new"] = lambda: RegionFrame(count, prepared.integers, len(prepared.numbers), room)
        if written:
            tensors = [n for n, a in enumerate(args) if not is_number(a)]
            for n in tensors:
                self._line(f"p{n} = v{n}.data_ptr()")
            self._addresses.update((n, f"p{n}") for n in tensors)
            self._line(f"lying = ({', '.join(self._addresses.values())},)")
        self._line("frame = frames.pop() if frames else new()")
        if written:
            known |= {"do_overlap": do_overlap, "spans": spans_of(args, written)}
            self._line("if lying != frame.apart:")
            self._line("    if do_overlap(lying, spans):")
            self._line(f"        return plain({names})")
            self._line("    frame.apart = lying")
        self._line("at = frame.at")
        if prepared.arena and not room:
            known["arena_of"] = arena_of
            self._line(f"arena = arena_of({prepared.arena})")
            self._line("at[0] = arena.data_ptr()")
        self._steps(names)
        if written:
            # Torch counts its own writes alone; graphs that saved the old values are stale.
            known["were_written"] = _were_written
            self._line(f"were_written({_tuple(written)})")
        self._line("frames.append(frame)")
        result = self._tape.result
        self._line(f"return {'()' if result is None else f'v{result}'}")

    def _line(self, text: str) -> None:
        self._lines.append(text)

    def _name(self, prefix: str, value: Any) -> str:
        """Return the name under which the function knows a value."""
        name = f"{prefix}{len(self._known)}"
        self._known[name] = value
        return name

    def _guards(self, number: int, arg: Any) -> list[str]:
        ty = self._tape.types[number]
        if is_number(arg):
            if isinstance(ty, SizeType):
                return [f"v{number} == {arg}"]
            return [f"v{number}.__class__ is {self._name('class_', type(arg))}"]
        if not isinstance(ty, TensorType):
            return []
        guards = [f"v{number}.__class__ in plain_classes"]
        if is_float(ty.dtype):
            guards.append(f"not v{number}.is_neg()")
        if ty.shape:
            guards.append(f"v{number}.shape == {self._name('shape_', arg.shape)}")
        if arg.is_contiguous():
            return [*guards, f"v{number}.is_contiguous()"] if ty.shape else guards
        return [*guards, f"v{number}.stride() == {tuple(arg.stride())}"]

    def _steps(self, names: str) -> None:
        tape, functions = self._tape, self._prepared.functions
        for number, step in enumerate(tape.steps):
            if number in functions:
                self._piece(*functions[number], names)
            if number not in self._in_c:
                if not self._is_early(number, step):
                    self._step(step)
                continue
            assert isinstance(step, KernelStep)
            if step.whole is not None:
                self._line(f"v{step.whole} = {_tuple(step.results)}")

    def _is_early(self, number: int, step: Step) -> bool:
        """Return whether a step has been done before the piece that it stands in."""
        if not isinstance(step, PartStep | SizeStep):
            return False
        pieces = (piece for piece, _ in self._prepared.functions.values())
        return any(p.steps[0] < number < p.steps[-1] for p in pieces)

    def _piece(self, piece: Piece, function: Any, names: str) -> None:
        """Write the call of a piece, after what stands in it and does not need it."""
        steps, prepared = self._tape.steps, self._prepared
        for step in steps[piece.steps[0] : piece.steps[-1]]:
            if isinstance(step, PartStep | SizeStep):
                self._step(step)
        kernels = [s for n in piece.steps if isinstance(s := steps[n], KernelStep)]
        made = [v for s in kernels for v in s.results]
        used = dict.fromkeys(v for s in kernels for v in s.operands if v not in made)
        numbers = {n: (place, f) for place, (n, f) in enumerate(prepared.numbers)}
        for value in used:
            if value in numbers:
                place, is_float = numbers[value]
                self._line(f"frame.{'floats' if is_float else 'ints'}[{place}] = v{value}")
            elif self._is_given(value):
                address = self._addresses.get(value, f"v{value}.data_ptr()")
                self._line(f"at[{value + 1}] = {address}")
        for value in made:
            self._made(value)
        name = self._name("piece_", function)
        self._line(f"if {name}(frame.address):")
        self._line(f"    return plain({names})")

    def _is_given(self, value: int) -> bool:
        """Return whether C reads a value at an address that Python passes."""
        if value in self._prepared.offsets or value in self._prepared.text.viewed:
            return False
        return not isinstance(self._tape.types[value], SizeType)

    def _made(self, value: int) -> None:
        """Write how the storage of a value that C makes is found."""
        shaped = self._prepared.made[value]
        shape = self._name("shape_", shaped.shape)
        begin = self._prepared.offsets.get(value)
        if begin is None:
            strides = self._name("strides_", contiguous_strides(shaped.shape))
            empty = self._name("empty_", maker_of(shaped.dtype))
            self._line(f"v{value} = {empty}({shape}, {strides})")
            self._line(f"at[{value + 1}] = v{value}.data_ptr()")
        elif value in self._needed:
            end, dtype = begin + shaped.bytes, self._name("dtype_", shaped.dtype)
            self._line(f"v{value} = arena[{begin}:{end}].view({dtype}).view({shape})")

    def _step(self, step: Step) -> None:
        match step:
            case KernelStep():
                self._called(step)
            case CallStep(name, operands, result):
                self._is_alone = False
                given = ", ".join(f"v{o}" for o in operands)
                self._line(f"v{result} = {self._name('torch_', self._callee(name))}({given})")
                self._plainly(result)
            case ViewStep(operand, result):
                if result in self._needed or result not in self._prepared.text.viewed:
                    self._is_alone = False
                    shape = self._name("shape_", self._prepared.made[result].shape)
                    self._line(f"v{result} = v{operand}.reshape({shape})")
                    self._plainly(result)
            case TupleStep(fields, result):
                self._line(f"v{result} = {_tuple(fields)}")
            case PartStep(whole, field, result):
                self._line(f"v{result} = v{whole}[{field}]")
                self._plainly(result)
            case SizeStep(dim, result):
                self._line(f"v{result} = {self._prepared.size(dim)}")
        dead = [f"v{n}" for n in step.dead if self._is_own(n)]
        if dead:
            self._line(f"{' = '.join(dead)} = None")

    def _called(self, step: KernelStep) -> None:
        """Write the call of a kernel that has no C."""
        self._is_alone = False
        name, operands, results = step.name, step.operands, step.results
        given = ", ".join(f"v{o}" for o in operands)
        call = f"{self._name('kernel_', self._callee(name))}({given})"
        if not step.is_tuple:
            self._line(f"v{results[0]} = {call}")
            self._plainly(results[0])
            return
        whole = "whole" if step.whole is None else f"v{step.whole}"
        self._line(f"{whole} = {call}")
        for field, value in enumerate(results):
            self._line(f"v{value} = {whole}[{field}]")
            self._plainly(value)

    def _is_own(self, value: int) -> bool:
        """Return whether a name holds a tensor that no other does: the caller has the arguments,
        with which torch runs what fails in C."""
        is_made = value >= self._tape.params
        in_c = value in self._prepared.offsets or value in self._prepared.text.viewed
        return is_made and (not in_c or value in self._needed)

    def _plainly(self, value: int) -> None:
        """Write that a value of torch's lies row by row, where C reads it."""
        if value in self._read_by_c and isinstance(self._tape.types[value], TensorType):
            self._line(f"v{value} = v{value}.contiguous()")


def _unrecorded(plain: Callee) -> Callee:
    """Return a function inside of which torch records nothing, whoever calls it."""

    def call(*args: Any) -> Any:
        before = torch.is_grad_enabled()
        try:
            _record(False)
            return plain(*args)
        finally:
            _record(before)

    return call


def _tuple(values: Sequence[int]) -> str:
    return f"({''.join(f'v{v}, ' for v in values)})"
