"""Models on a GPU that is not there: torch's fake tensors have a device and no elements."""

from __future__ import annotations

import torch


def move_to_pretended_gpu(model: torch.nn.Module) -> None:
    """Put new parameters and buffers of the same shapes on a GPU, inside a
    `FakeTensorMode`; `Module.to` would copy elements."""
    for module in model.modules():
        _move(module._parameters)
        _move(module._buffers)


def _move(held: dict[str, torch.Tensor | None] | dict[str, torch.nn.Parameter | None]) -> None:
    for name, value in held.items():
        if value is None:
            continue
        moved = torch.empty(value.shape, dtype=value.dtype, device="cuda")
        is_param = isinstance(value, torch.nn.Parameter)
        held[name] = torch.nn.Parameter(moved) if is_param else moved
