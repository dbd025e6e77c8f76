"""Kernel functions and regions as calls of torch: what other backends are compared with."""

from __future__ import annotations

from typing import Any, final

from ..kernels.backend import Backend, Device, KernelFunction, Run


@final
class TorchRegions(Backend):
    """Leaves every kernel and region to its fallback."""

    name = "torch-regions"
    description = "torch runs it, kernel by kernel"

    def unavailable(self, device: Device) -> str | None:
        """Return None: torch runs on every device it has tensors on."""
        return None

    def kernel(self, kernel: KernelFunction, device: Any, fallback: Run) -> Run:
        """Return the fallback."""
        return fallback
