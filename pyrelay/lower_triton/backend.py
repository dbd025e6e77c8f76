"""Kernels in Triton: on a GPU, or in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Final, final

from ..config import current
from ..kernels.backend import Backend, Device, Finding, KernelFunction, RegionFunction, Run
from ..kernels.fusion.segments import Segments
from ..kernels.groups import Kind
from .launching.build import NoTriton, check_driver, triton_module
from .launching.choosing import chooser
from .launching.graphs import CudaRecorder, GraphedRegion
from .launching.launch import KernelCall
from .launching.region import RegionCall
from .lower import lower, reading_again, text_of, why_without_text

if TYPE_CHECKING:
    import torch


@final
class TritonBackend(Backend):
    """Generates Triton kernels, launches them from a tape for each region, and records regions as
    CUDA graphs."""

    passes = (Segments(),)

    def __init__(self, name: str, device: str, description: str) -> None:
        """`device` is the kind of device that kernels of this lowering run on."""
        self.name = name
        self.description = description
        self._device: Final = device

    def unavailable(self, device: Device) -> str | None:
        """Return why no kernels run on a device: its kind, no Triton, no driver, no C compiler."""
        if device.type != self._device:
            return f"{_WHERE[self._device]}, and this call is on {device}"
        try:
            triton_module()
            if self._device == "cuda":
                check_driver()
        except NoTriton as error:
            return str(error)
        return None

    def kernel(self, kernel: KernelFunction, device: torch.device, fallback: Run) -> KernelCall:
        """Return the call of a kernel function."""
        return KernelCall(
            kernel.function,
            partial(lower, kernel.group),
            device,
            chooser(device),
            fallback,
            # Of all kernels only products of matrices have a library that may be better at them.
            may_prefer_torch=kernel.group.kind is Kind.CONTRACTION,
            written=kernel.overwritten,
        )

    def region(
        self,
        region: RegionFunction,
        device: torch.device,
        called: Callable[[str], Run],
        fallback: Run,
    ) -> Run:
        """Return a region as a tape of launches, on a GPU as a CUDA graph."""
        call = fallback
        if region.tape is not None:
            call = RegionCall(region, region.tape, called, fallback, device)
        if device.type == "cuda" and current().graphs:
            return GraphedRegion(call, region.overwritten, CudaRecorder(device))
        return call

    def text(self, kernel: KernelFunction) -> str:
        """Return the Triton text of a kernel, or why there is none."""
        return text_of(kernel)

    def findings(self, kernels: Iterable[KernelFunction]) -> Iterator[Finding]:
        """Yield which kernels run as calls of torch, and which read long rows again."""
        for kernel in kernels:
            why = why_without_text(kernel.group)
            if why is not None:
                yield Finding("kernels that run as calls of torch", kernel.name, why)
            again = reading_again(kernel.group)
            if again is not None:
                heading = "rows that are read again where registers do not hold them"
                yield Finding(heading, kernel.name, again)

    def versions(self) -> Iterator[tuple[str, str]]:
        """Yield the version of Triton that is installed."""
        try:
            yield "triton", metadata.version("triton")
        except metadata.PackageNotFoundError:
            yield "triton", "not installed"


_WHERE: Final = {"cpu": "the interpreter runs kernels on the CPU", "cuda": "kernels run on a GPU"}
"""The place of kernels, by kind of device."""


ON_GPU: Final = TritonBackend("triton", "cuda", "kernels run it on a GPU")
INTERPRETED: Final = TritonBackend("triton-interpret", "cpu", "Triton's interpreter runs it")
