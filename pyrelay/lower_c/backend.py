"""Kernels and regions in C, on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

from ..ir.expr import type_of
from ..ir.types import TupleType
from ..kernels.backend import (
    Backend,
    Device,
    Finding,
    KernelFunction,
    ProgramFunction,
    RegionFunction,
    Run,
)
from ..kernels.calling import NoKernel, contiguous_layout
from ..kernels.reading import types_of_results
from ..kernels.tape import KernelStep, Tape
from ..lazy import LazyModule, LazySequence
from .building import CannotBuild, find_compiler
from .candidates import is_candidate
from .launching.region import RegionCall
from .policy import Policy

if TYPE_CHECKING:
    from ..kernels.fusion import own_calls, segments
    from . import functions as in_c
    from . import math, products, text
    from .launching import routes
    from .text import region as region_texts
else:
    own_calls = LazyModule("pyrelay.kernels.fusion.own_calls")
    segments = LazyModule("pyrelay.kernels.fusion.segments")
    math = LazyModule("pyrelay.lower_c.math")
    products = LazyModule("pyrelay.lower_c.products")
    in_c = LazyModule("pyrelay.lower_c.functions")
    text = LazyModule("pyrelay.lower_c.text")
    routes = LazyModule("pyrelay.lower_c.launching.routes")
    region_texts = LazyModule("pyrelay.lower_c.text.region")


@final
class CBackend(Backend):
    """Generates C of kernels and whole regions, and builds it with the compiler of the machine."""

    cuts = LazySequence(lambda: (own_calls.OwnCalls(products.has_code),))
    passes = LazySequence(lambda: (segments.Segments(),))
    name = "c"
    description = "C runs its kernels, and functions that loop over numbers and tensors"

    def __init__(self, policy: Policy = Policy.AT_ONCE) -> None:
        """`policy` is when C is built."""
        self._policy: Final = policy
        if policy is Policy.REPEATED:
            self.description = (
                "C runs its kernels from their second call on, and functions that loop over numbers"
                " and tensors"
            )

    def unavailable(self, device: Device) -> str | None:
        """Return why nothing runs on a device that is no CPU. Without a compiler torch runs all."""
        return None if device.type == "cpu" else f"C runs on a CPU, and this call is on {device}"

    def kernel(self, kernel: KernelFunction, device: Any, fallback: Run) -> Run:
        """Return the call of a kernel function: of a region that has nothing else."""
        kernels = {kernel.name: kernel}
        tape = _alone(kernel)
        return RegionCall(
            kernel.name,
            tape,
            kernels,
            kernel.overwritten,
            _nothing,
            fallback,
            self._policy,
            kernel.identity,
        )

    def region(
        self,
        region: RegionFunction,
        device: Any,
        called: Callable[[str], Run],
        fallback: Run,
    ) -> Run:
        """Return a region as C."""
        if region.tape is None:
            return fallback
        return RegionCall(
            region.name,
            region.tape,
            region.kernels,
            region.overwritten,
            called,
            fallback,
            self._policy,
            region.identity,
        )

    def text(self, kernel: KernelFunction) -> str:
        """Return the C text of a kernel for operands that lie row by row, or why there is none."""
        try:
            made = text.lower(kernel.group, contiguous_layout(kernel.function), math.host_target())
            return "\n".join(k.text for k in made)
        except NoKernel as error:
            return f"// {kernel.name} runs as calls of torch: {error}\n"

    def region_text(self, region: RegionFunction) -> str:
        """Return the C functions of a region whose operands lie row by row; empty if torch runs
        all of it."""
        tape, kernels = region.tape, region.kernels
        if tape is None:
            return ""
        steps = enumerate(tape.steps)
        own = {
            n: contiguous_layout(kernels[s.name].function)
            for n, s in steps
            if isinstance(s, KernelStep)
        }
        text = region_texts.region_text(tape, kernels, own, math.host_target())
        return f"// {region.name}\n{text.own}" if text.pieces else ""

    def findings(self, kernels: Iterable[KernelFunction]) -> Iterator[Finding]:
        """Yield which kernels run as calls of torch, and what multiplies matrices in others."""
        for kernel in kernels:
            for note in routes.notes_of(kernel):
                yield Finding("products of matrices", kernel.name, note)
            try:
                text.lower(kernel.group, contiguous_layout(kernel.function), math.host_target())
            except NoKernel as error:
                yield Finding("kernels that run as calls of torch", kernel.name, str(error))

    def function(
        self,
        function: ProgramFunction,
        device: Any,
        called: Callable[[str], Run],
        fallback: Run,
    ) -> Run:
        """Return a function over numbers and tensors that loops or recurses as C."""
        return in_c.FunctionCall(function, fallback) if is_candidate(function) else fallback

    def function_text(self, function: ProgramFunction) -> str:
        """Return the C of a function, and of what it calls; empty if its host code runs."""
        return in_c.function_text(function)

    def function_findings(self, functions: Iterable[ProgramFunction]) -> Iterator[Finding]:
        """Yield which functions C runs whole, and why it does not run those that loop."""
        for name, why in in_c.function_findings(functions):
            if why is None:
                yield Finding("functions that C runs whole", name, "with what it calls")
            else:
                yield Finding("functions that loop, and run on the host", name, why)

    def versions(self) -> Iterator[tuple[str, str]]:
        """Yield the compiler, and the vectors of the processor."""
        try:
            compiler = find_compiler()
            yield "C compiler", compiler.version.partition("\n")[0]
        except CannotBuild as error:
            yield "C compiler", str(error)
        yield "vectors", math.host_target().name


def _alone(kernel: KernelFunction) -> Tape:
    """Return the tape of one kernel."""
    params = [type_of(p) for p in kernel.function.params]
    made = type_of(kernel.function.body)
    parts = types_of_results(made)
    count = len(params)
    results = tuple(range(count, count + len(parts)))
    whole = count + len(parts) if isinstance(made, TupleType) else None
    types = (*params, *parts, *(() if whole is None else (made,)))
    names = [p.name for p in kernel.function.params] + ["result"] * (len(types) - count)
    step = KernelStep(kernel.name, tuple(range(count)), results, whole is not None, whole)
    result = results[0] if whole is None else whole
    return Tape((step,), types, tuple(names), count, result, {}, (), {})


def _nothing(name: str) -> Run:
    raise AssertionError(name)  # the region of one kernel calls nothing else
