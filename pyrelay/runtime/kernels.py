"""Kernel functions of a program as what the compiled host calls in their place."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from ..config import current
from ..lower_triton.kernel import NoKernel
from ..lower_triton.launch import KernelCall
from ..lower_triton.lower import lower
from ..passes.regions.written import written_parameters
from .graphs import CudaRecorder, GraphedRegion

if TYPE_CHECKING:
    import torch

    from ..ir.expr import Function
    from ..ir.module import Module
    from ..passes.regions.pipeline import Regions

_LOGGER: Final = logging.getLogger("pyrelay.kernels")


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
            return KernelOrTorch(name, self._module.functions[name], self._device, code)
        if name in self._regions and self._device.type == "cuda" and current().graphs:
            return GraphedRegion(code, written_parameters(self._module, name), CudaRecorder())
        return code


@final
class KernelOrTorch:
    """A kernel function: its kernels, or, where no text is made for it, its code in torch."""

    def __init__(
        self, name: str, function: Function, device: torch.device, in_torch: Callable[..., Any]
    ) -> None:
        self._name: Final = name
        self._in_torch: Final = in_torch
        self._kernels: Final = KernelCall(function, lower(function), device)
        self.refused: str | None = None
        """Why there are no kernels, once that is known."""

    def __call__(self, *operands: Any) -> Any:
        """Give the results of the function."""
        if self.refused is not None:
            return self._in_torch(*operands)
        try:
            return self._kernels(*operands)
        except NoKernel as error:
            self.refused = str(error)
            _LOGGER.info("%s runs as calls of torch: %s", self._name, error)
            return self._in_torch(*operands)
