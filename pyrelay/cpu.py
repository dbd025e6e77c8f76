"""The processor of this machine."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, final

from .dataclass import dataclass

_NATIVE: Final = {"aarch64": "-mcpu=native", "arm64": "-mcpu=native", "ppc64le": "-mcpu=native"}
"""How compilers spell the processor of this machine, where it is not `-march=native`."""


@final
@dataclass(frozen=True, slots=True)
class Cpu:
    """A processor: its architecture, its name, and the features of its instructions, spelled as the
    system spells them."""

    machine: str
    name: str
    features: frozenset[str]

    @property
    def vector_bytes(self) -> int:
        """The bytes of the widest vectors that its instructions work on."""
        if {"avx512f", "avx512dq", "avx512vl", "avx512bw"} <= self.features:
            return 64
        return 32 if {"avx2", "fma"} <= self.features else 16

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags by which a compiler uses all of its instructions."""
        return (_NATIVE.get(self.machine, "-march=native"),)

    @property
    def key(self) -> str:
        """The features that distinguish it from processors that run other machine code."""
        return f"{self.machine} {self.name} {' '.join(sorted(self.features))}"


@cache
def cpu() -> Cpu:
    """Return the processor of this machine, as far as the system describes it."""
    machine = platform.machine().lower()
    described = _proc_cpuinfo() or _sysctl()
    name = described.get("model name") or described.get("brand_string") or platform.processor()
    features = " ".join(described.get(k, "") for k in ("flags", "features", "leaf7_features"))
    return Cpu(machine, name, frozenset(features.lower().split()))


def _proc_cpuinfo() -> Mapping[str, str]:
    """Return Linux's description of the first processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    first, _, _ = text.partition("\n\n")
    lines = (line.partition(":") for line in first.splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _sysctl() -> Mapping[str, str]:
    """Return the description of the processor by macOS."""
    try:
        done = subprocess.run(
            ["sysctl", "machdep.cpu"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = (line.partition(":") for line in done.stdout.splitlines())
    return {name.rpartition(".")[2]: value.strip() for name, _, value in lines}
