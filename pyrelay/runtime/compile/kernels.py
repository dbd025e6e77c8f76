"""Kernel and region functions of a program as what the compiled host calls in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from ...kernels.backend import Backend, KernelFunction, RegionFunction
from ...kernels.memory import plan_memory
from ...kernels.outlined import outlined_of
from ...kernels.overwritten import written_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from ...ir.module import Module


@final
class Kernels:
    """What the host calls in the place of the kernel and region functions of a program."""

    def __init__(
        self, backend: Backend, regions: Module, launched: Module, device: torch.device
    ) -> None:
        """`launched` is the program `regions` after the passes of the backend."""
        self._backend: Final = backend
        self._cut: Final = regions
        self._launched: Final = launched
        self._outlined: Final = outlined_of(regions)
        self._regions: Final = frozenset(self._outlined.regions)
        self._device: Final = device
        self.called: Final[dict[str, Callable[..., Any]]] = {}

    def __call__(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is called in the place of a global function with this code."""
        self.called[name] = self._instead(name, code)
        return self.called[name]

    def _instead(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        if name in self._outlined.groups:
            kernel = KernelFunction(name, self._outlined.groups[name])
            return self._backend.kernel(kernel, self._device, code)
        if name in self._regions:
            return self._backend.region(
                self._region(name), self._device, self.called.__getitem__, code
            )
        return code

    def _region(self, name: str) -> RegionFunction:
        plan = plan_memory(self._cut.functions[name], self._outlined.kernels)
        written = written_parameters(self._cut, name)
        return RegionFunction(name, self._launched.functions[name], plan, written)
