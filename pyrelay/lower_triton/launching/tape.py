"""A region at certain sizes as a list of steps: kernels that run at addresses, and calls of torch.

What only kernels read is never a tensor: it is an address in the *arena*, one allocation for each
run that the region's memory plan divides. Results, and what torch allocates, are tensors of their
own. A run owns all that it makes, so runs may nest, overlap on several streams and fail midway; a
graph that records a run keeps its arena.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final, TypeAlias, final

import torch

from ...dataclass import dataclass
from ...kernels.operands import contiguous_strides
from .build import interprets
from .launch import current_stream, on
from .prepare import Storage
from .start import Launch, are_aligned

ALIGNMENT: Final = 512
"""The alignment of values in the arena, in bytes, as torch's allocator has it."""


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """Storage in the arena: where it begins, in bytes, and the number of the value in it.
    `is_tensor` says that torch reads it, too."""

    number: int
    offset: int
    storage: Storage
    is_tensor: bool


@final
@dataclass(frozen=True, slots=True)
class KernelLaunches:
    """Kernels, whose holes are the numbers of values; `fresh` are the results that outlive the
    run, `whole` is the number of the tuple of them, if something needs it."""

    launches: tuple[Launch, ...]
    slots: tuple[Slot, ...]
    fresh: tuple[tuple[int, Storage], ...]
    whole: tuple[int, tuple[int, ...]] | None
    dead: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class TorchCall:
    """A call of torch's. `strides` are those of the first run, where kernels rely on them."""

    function: Callable[..., Any]
    operands: tuple[int, ...]
    result: int
    strides: tuple[int, ...] | None
    dead: tuple[int, ...]


SizedStep: TypeAlias = KernelLaunches | TorchCall


@final
@dataclass(frozen=True, slots=True)
class SizedTape:
    """The steps of a region at certain sizes. Its arguments are the first of `values` values,
    the one numbered `result` is its result; `bytes` is the size of the arena."""

    steps: tuple[SizedStep, ...]
    values: int
    result: int | None
    bytes: int
    device: torch.device

    def run(self, args: Sequence[Any]) -> Any:
        """Return the result of the region."""
        return _Run(self, args).result()


@final
class _Run:
    """One run: `values` are tensors and what else Python knows, `passed` are the arguments of
    kernels for them. In the interpreter these are the tensors, too."""

    __slots__ = ("_aligned", "_arena", "_base", "_passed", "_tape", "_typed", "_values")

    def __init__(self, tape: SizedTape, args: Sequence[Any]) -> None:
        self._tape = tape
        missing = tape.values - len(args)
        self._values: list[Any] = [*args, *[None] * missing]
        self._aligned = True
        self._arena = make_arena(tape.bytes, tape.device) if tape.bytes else None
        self._typed: dict[torch.dtype, torch.Tensor] = {}
        if interprets():
            self._passed = self._values
            self._base = None
            return
        pointers = [a.data_ptr() for a in args if isinstance(a, torch.Tensor)]
        self._aligned = are_aligned(pointers)
        passed = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
        self._passed = [*passed, *[None] * missing]
        self._base = 0 if self._arena is None else self._arena.data_ptr()

    def result(self) -> Any:
        """Do all steps."""
        with nullcontext() if self._base is None else on(self._tape.device):
            stream = 0 if self._base is None else current_stream()
            for step in self._tape.steps:
                if isinstance(step, KernelLaunches):
                    self._launch(step, stream)
                else:
                    self._call(step)
                for number in step.dead:
                    self._values[number] = None
        return () if self._tape.result is None else self._values[self._tape.result]

    def _launch(self, step: KernelLaunches, stream: int) -> None:
        for slot in step.slots:
            self._open(slot)
        for number, storage in step.fresh:
            made = self._values[number] = storage.make(self._tape.device)
            if self._base is not None:
                self._passed[number] = made.data_ptr()
        if self._base is None:
            for launch in step.launches:
                launch.interpret(self._passed)
        else:
            for launch in step.launches:
                launch.start(self._passed, stream, is_aligned=self._aligned)
        if step.whole is not None:
            number, fields = step.whole
            self._values[number] = tuple([self._values[f] for f in fields])

    def _open(self, slot: Slot) -> None:
        """Place a value in the arena."""
        if self._base is not None:
            self._passed[slot.number] = self._base + slot.offset
            if not (slot.is_tensor or slot.storage.starts_zero):
                return
        tensor = self._tensor(slot)
        if slot.storage.starts_zero:
            tensor.zero_()
        if slot.is_tensor or self._base is None:
            self._values[slot.number] = tensor

    def _tensor(self, slot: Slot) -> torch.Tensor:
        dtype = slot.storage.dtype
        typed = self._typed.get(dtype)
        if typed is None:
            assert self._arena is not None
            typed = self._typed[dtype] = self._arena.view(dtype)
        return slot_of(typed, slot)

    def _call(self, step: TorchCall) -> None:
        values = self._values
        result = step.function(*[values[o] for o in step.operands])
        if step.strides is not None and result.stride() != step.strides:
            moved = result
            result = torch.empty_strided(
                moved.shape, step.strides, dtype=moved.dtype, device=moved.device
            ).copy_(moved)
        values[step.result] = result
        if self._base is None:
            return
        if not isinstance(result, torch.Tensor):
            self._passed[step.result] = result
            return
        address = self._passed[step.result] = result.data_ptr()
        self._aligned = self._aligned and are_aligned((address,))


def make_arena(count: int, device: torch.device) -> torch.Tensor:
    """Return so many bytes of a device's memory."""
    return torch.empty(count, dtype=torch.uint8, device=device)


def slot_of(arena: torch.Tensor, slot: Slot) -> torch.Tensor:
    """Return the tensor of a value in the arena, which has its dtype."""
    shape, first = slot.storage.shape, slot.offset // arena.itemsize
    return arena.as_strided(shape, contiguous_strides(shape), arena.storage_offset() + first)
