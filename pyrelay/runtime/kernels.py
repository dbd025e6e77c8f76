"""Kernel functions of a program as what the compiled host calls in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from ..config import current
from ..lower_triton.launch import KernelCall
from ..lower_triton.lower import lower
from ..passes.regions.groups import Kind, group_of
from ..passes.regions.written import written_parameters
from .choosing import chooser
from .graphs import CudaRecorder, GraphedRegion

if TYPE_CHECKING:
    import torch

    from ..ir.module import Module
    from ..passes.regions.pipeline import Regions


@final
class Kernels:
    """What the host calls in the place of the kernel and region functions of a program."""

    def __init__(self, module: Module, cut: Regions, device: torch.device) -> None:
        self._module: Final = module
        self._kernels: Final = frozenset(cut.kernels)
        self._regions: Final = frozenset(cut.regions)
        self._device: Final = device

    def __call__(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        """Give what is called in the place of a global function with this code."""
        if name in self._kernels:
            return self._kernel(name, code)
        if name in self._regions and self._device.type == "cuda" and current().graphs:
            return GraphedRegion(code, written_parameters(self._module, name), CudaRecorder())
        return code

    def _kernel(self, name: str, code: Callable[..., Any]) -> KernelCall:
        function = self._module.functions[name]
        # Of all kernels only products of matrices have a library that may be better at them.
        is_product = group_of(function).kind is Kind.CONTRACTION
        return KernelCall(
            function,
            lower(function),
            self._device,
            chooser(self._device),
            code,
            may_prefer_torch=is_product,
        )
