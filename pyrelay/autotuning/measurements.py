"""The winners of measurements, by the key of the measurement: in this process, and on disk.

A key has what was measured, and where: on which processor, with which torch, on how many threads;
or on which other device.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from functools import cache
from importlib import metadata
from typing import Any, Final

import torch

from ..cpu import cpu
from ..disk_cache import DiskCache
from .timing import Fastest

_LOGGER: Final = logging.getLogger("pyrelay.autotuning")
_VERSION: Final = 3
"""It grows when what is measured, or how, changes."""

_CACHE: Final = DiskCache("measurements", limit=16 << 20)


_winners: Final[dict[str, str]] = {}
"""The winners that this process has looked up or found."""


def key_of(*parts: Any) -> str:
    """Return the key of a measurement on this machine of what the parts, plain data, describe."""
    return json.dumps([_VERSION, _machine(), torch.get_num_threads(), *parts])


def key_on(device: Sequence[Any], *parts: Any) -> str:
    """Return the key of a measurement on a device that plain data describes."""
    return json.dumps([_VERSION, torch.__version__, _triton_version(), *device, *parts])


def winner_of(key: str, among: Collection[str]) -> str | None:
    """Return the winner of a measurement, if it was made before and is one of these."""
    found = _winners.get(key) or recall(key)
    if found is None or found not in among:
        return None
    _winners[key] = found
    return found


def settle(key: str, what: str, found: Fastest) -> None:
    """Let a measurement of something decide from now on; a guess does so in this process alone."""
    _winners[key] = found.name
    if found.is_sure:
        keep(key, found.name)
    _LOGGER.info("%s: %s (%s)", what, found.name, found.shown)


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
