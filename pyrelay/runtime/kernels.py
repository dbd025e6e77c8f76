"""Kernel functions of a program as what the compiled host calls in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from ..config import current
from ..lower_triton.launch import KernelCall
from ..lower_triton.lower import lower
from ..lower_triton.region import RegionCall, can_be_taped
from ..passes.regions.groups import Kind, group_of
from ..passes.regions.memory import plan_memory
from ..passes.regions.written import written_parameters
from .choosing import chooser
from .graphs import CudaRecorder, GraphedRegion

if TYPE_CHECKING:
    import torch

    from ..passes.regions.pipeline import Regions


@final
class Kernels:
    """What the host calls in the place of the kernel and region functions of a program."""

    def __init__(self, cut: Regions, launched: Regions, device: torch.device) -> None:
        """`launched` is the program `cut` with its regions in segments."""
        self._cut: Final = cut
        self._launched: Final = launched.module
        self._kernels: Final = frozenset(cut.kernels)
        self._regions: Final = frozenset(cut.regions)
        self._device: Final = device
        self.called: Final[dict[str, Callable[..., Any]]] = {}

    def __call__(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        """Give what is called in the place of a global function with this code."""
        self.called[name] = self._instead(name, code)
        return self.called[name]

    def _instead(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        if name in self._kernels:
            return self._kernel(name, code)
        if name in self._regions:
            return self._region(name, code)
        return code

    def _kernel(self, name: str, code: Callable[..., Any]) -> KernelCall:
        function = self._launched.functions[name]
        group = group_of(function)
        # Of all kernels only products of matrices have a library that may be better at them.
        return KernelCall(
            function,
            lower(function),
            self._device,
            chooser(self._device),
            code,
            may_prefer_torch=group.kind is Kind.CONTRACTION,
            written=[o.overwrites for o in group.outputs if o.overwrites is not None],
        )

    def _region(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        written = written_parameters(self._cut.module, name)
        region = self._launched.functions[name]
        call = code
        if can_be_taped(region):
            plan = plan_memory(self._cut.module.functions[name], self._kernels)
            call = RegionCall(region, plan, self.called.__getitem__, code, self._device, written)
        if self._device.type == "cuda" and current().graphs:
            return GraphedRegion(call, written, CudaRecorder(self._device))
        return call
