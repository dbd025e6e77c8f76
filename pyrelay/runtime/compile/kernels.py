"""Kernel and region functions of a program as what the compiled host calls in their place."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ...interrupts import uninterrupted
from ...ir.expr import GlobalVar
from ...ir.traverse import post_order
from ...kernels.backend import Backend, KernelFunction, ProgramFunction, RegionFunction
from ...kernels.memory import plan_memory
from ...kernels.outlined import outlined_of, written_parameters
from ...kernels.tape import only_reshapes, tape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from ...ir.module import Module


@final
class Kernels:
    """The callables that the host runs in place of the kernel and region functions of a program."""

    def __init__(
        self,
        backend: Backend,
        launched: Module,
        device: torch.device,
        identity: str | None = None,
    ) -> None:
        """`launched` is the program after the passes of the backend; `identity` determines it in
        every process."""
        self._identity: Final = identity
        self._backend: Final = backend
        self._launched: Final = launched
        outlined = outlined_of(launched)
        self._kernels: Final = {
            n: KernelFunction(n, g, self._identity_of(n)) for n, g in outlined.groups.items()
        }
        self._regions: Final = outlined.functions
        self._device: Final = device
        self.called: Final[dict[str, Callable[..., Any]]] = {}

    def __call__(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        """Return the callable that replaces a global function with this code."""
        self.called[name] = self._instead(name, code)
        return self.called[name]

    def _instead(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        called = self.called.__getitem__
        if name in self._kernels:
            kernel = self._kernels[name]
            return self._backend.kernel(kernel, self._device, _whole(kernel, code))
        if name in self._regions:
            region = self.region(name)
            return self._backend.region(region, self._device, called, _whole(region, code))
        function = ProgramFunction(name, self._launched)
        return self._backend.function(function, self._device, called, code)

    def regions(self) -> Iterator[RegionFunction]:
        """Yield the region functions."""
        return map(self.region, self._regions)

    def region(self, name: str) -> RegionFunction:
        """Return a region function."""
        function = self._launched.functions[name]
        groups = {n: kernel.group for n, kernel in self._kernels.items()}
        plan = plan_memory(self._regions[name], groups)
        nodes = [n.name for n in post_order(function.body) if isinstance(n, GlobalVar)]
        kernels = {n: self._kernels[n] for n in nodes if n in self._kernels}
        written = written_parameters(self._launched, name)
        called = {n: self._launched.functions[n] for n in nodes if n not in kernels}
        reshaping = {n for n, f in called.items() if only_reshapes(f)}
        tape = tape_of(function, plan, kernels, reshaping)
        return RegionFunction(name, function, kernels, tape, written, self._identity_of(name))

    def _identity_of(self, name: str) -> str | None:
        return None if self._identity is None else f"{self._identity} {name}"


def _whole(
    function: KernelFunction | RegionFunction, code: Callable[..., Any]
) -> Callable[..., Any]:
    """Return host code in which Ctrl-C comes before the first parameter changes or after the
    last: it calls torch for each."""
    return partial(uninterrupted, code) if function.overwritten else code
