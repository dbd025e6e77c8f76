"""Kernel functions and regions as calls of torch: what other backends are compared with."""

from __future__ import annotations

from typing import Any, final

from ..kernels.backend import Backend, Device, KernelFunction, Run


@final
class TorchRegions(Backend):
    """Leaves every kernel and region to its fallback."""

    @property
    def name(self) -> str:
        """The value of the option `lowering` that chooses the backend."""
        return "torch-regions"

    @property
    def description(self) -> str:
        """A phrase that names what runs the program."""
        return "torch runs it, kernel by kernel"

    def unavailable(self, device: Device) -> str | None:
        """Return None: torch runs on every device it has tensors on."""
        return None

    def kernel(self, kernel: KernelFunction, device: Any, fallback: Run) -> Run:
        """Return the fallback."""
        return fallback
