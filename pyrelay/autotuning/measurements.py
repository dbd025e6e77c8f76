"""What was measured before, kept in the cache folder: small files that name a winner each.

The place of a file is the hash of its key, and it contains the key, so one that is cut, that
another program wrote or that has the place of another key is not believed but written anew. There
are 65,536 places, so the folder does not grow without end. A key says what was measured and where:
on which processor, with which torch, on how many threads; or on which other device.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import torch

from ..config import cache_folder
from ..files import replace_file

_VERSION: Final = 1
"""It grows when what is measured, or how, changes."""

_LOGGER: Final = logging.getLogger("pyrelay.runtime")


def key_of(*parts: Any) -> str:
    """Return the key of a measurement on this machine of what the parts, plain data, describe."""
    return json.dumps([_VERSION, _machine(), torch.get_num_threads(), *parts])


def key_on(device: Sequence[Any], *parts: Any) -> str:
    """Return the key of a measurement on a device that plain data describes."""
    return json.dumps([_VERSION, torch.__version__, _triton_version(), *device, *parts])


def recall(key: str) -> str | None:
    """Return the winner of a measurement that was made before."""
    try:
        found = json.loads(_place(key).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    match found:
        case {"key": kept, "winner": str(winner)} if kept == key:
            return winner
        case _:
            return None


def keep(key: str, winner: str) -> None:
    """Keep the winner of a measurement, where a file can be written at all."""
    path = _place(key)
    text = json.dumps({"key": key, "winner": winner}) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        _LOGGER.info("a measurement was not kept: %s", error)


def _place(key: str) -> Path:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return cache_folder() / "measurements" / f"{digest[:4]}.json"


@cache
def _machine() -> tuple[str, ...]:
    capability = torch.backends.cpu.get_cpu_capability()
    return torch.__version__, platform.machine(), _processor(), capability


@cache
def _triton_version() -> str | None:
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the name of the processor, where the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    entries = (line.partition(":") for line in lines)
    wanted = ("model name", "cpu family", "model")
    found = {name.strip(): value.strip() for name, _, value in entries if name.strip() in wanted}
    return " ".join(found.get(name, "") for name in wanted) or platform.processor()
