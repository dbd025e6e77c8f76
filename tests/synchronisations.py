"""What would make a GPU's queue run empty: Python asking for the value of a tensor.

A mode that looks on while a program runs, on any device: on the CPU, where every tensor is real,
and on a pretended GPU, where copies between the two show as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_READS = (
    "_local_scalar_dense",  # item(), int(), float(), bool(), tolist() of one
    "is_nonzero",
    "equal",
    "nonzero",
    "masked_select",
    "unique",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "repeat_interleave",
    "bincount",
    "allclose",
)
"""Operators of torch that wait for values: their result is a Python value, or its size is one."""


class Synchronisations(TorchDispatchMode):
    """Notes the operators that make the host wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        result = func(*args, **kwargs)
        if name in _READS or _crosses(args, result) or _by_mask(name, args):
            self.found.append(name)
        return result


def _by_mask(name: str, args: tuple[Any, ...]) -> bool:
    """Return whether elements are picked by bools, whose number must then be known."""
    indices = args[1] if name.startswith("index") and len(args) > 1 else ()
    indices = indices if isinstance(indices, list | tuple) else ()
    return any(isinstance(i, torch.Tensor) and i.dtype is torch.bool for i in indices)


def _crosses(args: tuple[Any, ...], result: Any) -> bool:
    """Return whether a tensor is copied between the host and a device, either way."""
    devices = {t.device.type for t in _tensors([args, result])}
    return "cpu" in devices and len(devices) > 1


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in a value of nested lists and tuples, such as the places of an index."""
    found: list[torch.Tensor] = []
    pending = [value]
    while pending:
        match pending.pop():
            case torch.Tensor() as tensor:
                found.append(tensor)
            case list() | tuple() as several:
                pending += several
            case _:
                pass
    return found
