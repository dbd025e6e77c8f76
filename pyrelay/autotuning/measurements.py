"""Measurements kept on disk: the winner by the key of the measurement.

A key has what was measured, and where: on which processor, with which torch, on how many threads;
or on which other device.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from typing import Any, Final

import torch

from ..cpu import cpu
from ..disk_cache import DiskCache

_VERSION: Final = 3
"""It grows when what is measured, or how, changes."""

_CACHE: Final = DiskCache("measurements", limit=16 << 20)


def key_of(*parts: Any) -> str:
    """Return the key of a measurement on this machine of what the parts, plain data, describe."""
    return json.dumps([_VERSION, _machine(), torch.get_num_threads(), *parts])


def key_on(device: Sequence[Any], *parts: Any) -> str:
    """Return the key of a measurement on a device that plain data describes."""
    return json.dumps([_VERSION, torch.__version__, _triton_version(), *device, *parts])


def recall(key: str) -> str | None:
    """Return the winner of a measurement that was made before."""
    found = _CACHE.find(key)
    return None if found is None else found.decode()


def keep(key: str, winner: str) -> None:
    """Keep the winner of a measurement, where a file can be written at all."""
    _CACHE.keep(key, winner.encode())


@cache
def _machine() -> tuple[str, ...]:
    capability = torch.backends.cpu.get_cpu_capability()
    return torch.__version__, cpu().machine, cpu().name, capability


@cache
def _triton_version() -> str | None:
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None
