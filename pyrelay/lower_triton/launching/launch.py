"""Kernel functions as Python callables: what a compiled program calls in the place of torch.

A call looks at its operands: their forms choose the text (`Layout`), their sizes and strides the
grid and the integers that are passed. Everything that follows from these is found once and kept,
so that a call with known sizes makes its results and starts its kernels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, Final, TypeAlias, final

import torch
from torch.autograd.graph import increment_version

from ...config import current
from ...interrupts import uninterrupted
from ...ir.expr import Function, type_of
from ...ir.types import TupleType
from ...kernels.calling import Layout, NoKernel, Sizes
from ...kernels.operands import counts_of, is_shared, key_of, layout_of
from ..kernel import Kernel, Lowered, Target
from .build import interprets, triton_error, triton_module
from .prepare import Choose, Prepared, Preparing, Storage, expected, fitting
from .start import Launch, are_aligned
from .versions import MOST_PROCESSORS, multiplies_doubles, processors_of

MOST_SHAPES: Final = 256
"""A kernel function keeps what follows from so many combinations of sizes at most."""

_LOGGER: Final = logging.getLogger("pyrelay.kernels")

Lower: TypeAlias = Callable[[Layout, Target], Lowered]


@final
class KernelCall:
    """A kernel function of a program on one device.

    Called with its operands (tensors, and numbers of rank 0) it gives its result, or a tuple of
    its results, in fresh storage but for what it overwrites. `in_torch` does the same as calls of
    torch, and does it where no text is made for the function, where no kernel of it fits the
    device, or where an operand that is overwritten lies in the storage of another; it is one of
    the ways to choose from if `may_prefer_torch`. Raises NoTriton, and NoKernel or Triton's own
    error where there is no `in_torch`.
    """

    def __init__(
        self,
        function: Function,
        lower: Lower,
        device: torch.device,
        choose: Choose = expected,
        in_torch: Callable[..., Any] | None = None,
        *,
        may_prefer_torch: bool = False,
        written: Sequence[int] = (),
    ) -> None:
        """`written` are the positions of the operands that it overwrites."""
        self._function: Final = function
        self._lower: Final = lower
        self._device: Final = device
        self._choose: Final = choose
        self._in_torch: Final = in_torch
        self._may_prefer_torch: Final = may_prefer_torch and in_torch is not None
        self._types: Final = [type_of(p) for p in function.params]
        self._counts: Final = counts_of(function)
        self._gives: Final = function.body.ty
        self._written: Final = tuple(written)
        self._lowered: Final[dict[tuple[Layout, Target], Lowered]] = {}
        self._prepared: Final[dict[tuple[Any, ...], Prepared]] = {}
        self.refused: str | None = None
        """Why there are no kernels, once that is known."""

    def __call__(self, *operands: Any) -> Any:
        """Run the kernels of the group."""
        prepared = self.prepared(operands)
        overlaps = self._written and is_shared(operands, self._written)
        if prepared is None or prepared.in_torch or overlaps:
            assert self._in_torch is not None
            return self._in_torch(*operands)
        made = [s.make(self._device) for s in prepared.storage]
        whole = partial(uninterrupted, start) if self._written else start
        whole(prepared.launches, [*operands, *made], self._device)
        if self._written:
            increment_version([operands[n] for n in self._written])
        if isinstance(prepared.results, int):
            return made[prepared.results]
        return tuple([made[i] for i in prepared.results])

    def prepared(self, operands: Sequence[Any]) -> Prepared | None:
        """Return the kernels, ready for the sizes of operands; None where there is no text."""
        if self.refused is not None:
            return None
        key = key_of(operands, self._types)
        found = self._prepared.get(key)
        if found is not None:
            return found
        try:
            found = self._prepare(operands)
        except NoKernel as error:
            if self._in_torch is None:
                raise
            self.refused = str(error)
            _say_once(f"code runs as calls of torch and not as a kernel: {error}")
            return None
        except triton_error() as error:
            if self._in_torch is None:
                raise
            why = str(error).partition("\n")[0] or type(error).__name__
            _say_once(f"code runs as calls of torch, since no kernel for it runs here: {why}")
            found = Prepared((), (), (), in_torch=True)
        if len(self._prepared) >= MOST_SHAPES:
            del self._prepared[next(iter(self._prepared))]
        self._prepared[key] = found
        return found

    def lowered(self, layout: Layout, target: Target) -> Lowered:
        """Return the kernels for a layout, as text."""
        key = layout, target
        if key not in self._lowered:
            self._lowered[key] = self._lower(layout, target)
        return self._lowered[key]

    def _prepare(self, operands: Sequence[Any]) -> Prepared:
        sizes = Sizes(zip(self._types, operands, strict=True))
        layout = layout_of(operands, sizes, self._counts)
        lowered = fitting(self.lowered(layout, _target(self._device)), sizes)
        preparing = Preparing(operands, sizes, self._device)
        trial = _Trial(operands, preparing.storage, self._device)
        launches: list[Launch] = []
        for kernel in lowered.kernels:
            ways = preparing.candidates(kernel)
            if len(ways) > 1:
                trial.of(launches)()  # what they store is read
                question = preparing.question([kernel])
                ways = [ways[self._choose(question, [trial.of([way]) for way in ways])]]
            launches += ways
        in_torch = self._prefers_torch(preparing, lowered.kernels, trial, launches)
        storage = tuple(preparing.storage)
        return Prepared(storage, tuple(launches), self._results(preparing), in_torch)

    def _prefers_torch(
        self,
        preparing: Preparing,
        kernels: Sequence[Kernel],
        trial: _Trial,
        launches: Sequence[Launch],
    ) -> bool:
        if not self._may_prefer_torch or not launches:
            return False
        in_torch = self._in_torch
        assert in_torch is not None
        question = preparing.question(kernels)
        return bool(self._choose(question, [trial.of(launches), lambda: in_torch(*trial.operands)]))

    def _results(self, preparing: Preparing) -> tuple[int, ...] | int:
        if isinstance(self._gives, TupleType):
            return tuple(preparing.result(i) for i in range(len(self._gives.fields)))
        return preparing.result(0)


def _target(device: torch.device) -> Target:
    """Return a device, and the options in effect, as the text of kernels depends on them."""
    tf32 = current().tf32
    if interprets():
        return Target(tf32, is_interpreted=True, processors=MOST_PROCESSORS)
    triton = triton_module()
    with on(device):
        found = current_driver().get_current_target()
    doubles = multiplies_doubles(triton, found)
    return Target(tf32, processors=processors_of(triton, found), has_double_blocks=doubles)


@final
class _Trial:
    """Runs that nobody sees: storage of their own, copies of the operands made once."""

    def __init__(
        self, operands: Sequence[Any], storage: Sequence[Storage], device: torch.device
    ) -> None:
        self._given: Final = operands
        self._storage: Final = storage
        self._device: Final = device
        self._made: Final[list[torch.Tensor]] = []
        self._copies: list[Any] | None = None

    @property
    def operands(self) -> list[Any]:
        """The copies."""
        if self._copies is None:
            self._copies = [o.clone() if isinstance(o, torch.Tensor) else o for o in self._given]
        return self._copies

    def of(self, launches: Sequence[Launch]) -> Callable[[], None]:
        """Return a run of kernels."""

        def run() -> None:
            missing = self._storage[len(self._made) :]
            self._made.extend([s.make(self._device) for s in missing])
            start(launches, [*self.operands, *self._made], self._device)

        return run


@cache
def _say_once(message: str) -> None:
    _LOGGER.warning(message)


def start(launches: Sequence[Launch], values: Sequence[Any], device: torch.device) -> None:
    """Start kernels, on the current stream of a device, on tensors and numbers."""
    if interprets():
        for launch in launches:
            launch.interpret(values)
        return
    found = [v.data_ptr() if isinstance(v, torch.Tensor) else v for v in values]
    pointers = [p for p, v in zip(found, values, strict=True) if isinstance(v, torch.Tensor)]
    is_aligned = are_aligned(pointers)
    with on(device):
        stream = current_stream()
        for launch in launches:
            launch.start(found, stream, is_aligned=is_aligned)


def on(device: torch.device) -> AbstractContextManager[Any]:
    """Return the context manager that makes a device the current one."""
    if device.index in (None, current_driver().get_current_device()):
        return _HERE
    return torch.cuda.device(device)


def current_stream() -> int:
    """Return the current stream of the current device, as a number."""
    driver = current_driver()
    return driver.get_current_stream(driver.get_current_device())


_HERE: Final = nullcontext()


@cache
def current_driver() -> Any:
    """Return Triton's driver of the GPU."""
    return triton_module().runtime.driver.active
