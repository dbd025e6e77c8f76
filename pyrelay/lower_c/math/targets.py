"""Instruction sets that C is generated for, and the vectors they have."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, final

from ...ir.types import DType


@final
@dataclass(frozen=True, slots=True)
class Target:
    """An instruction set: `register_bytes` is the size of its vectors, `flags` are the options by
    which a compiler may use it."""

    name: str
    register_bytes: int
    has_fma: bool
    flags: tuple[str, ...] = ()


AVX512: Final = Target(
    "avx512",
    64,
    has_fma=True,
    flags=("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma", "-mf16c"),
)
AVX2: Final = Target("avx2", 32, has_fma=True, flags=("-mavx2", "-mfma", "-mf16c"))
NEON: Final = Target("neon", 16, has_fma=True)
PORTABLE: Final = Target("portable", 16, has_fma=False)

TARGETS: Final = {t.name: t for t in (AVX512, AVX2, NEON, PORTABLE)}

_CAPABILITIES: Final = {"AVX512": AVX512, "AVX2": AVX2}


@cache
def host_target() -> Target:
    """Return the widest instruction set of this machine that torch's own kernels use."""
    import torch

    if platform.machine().lower() in ("aarch64", "arm64"):
        return NEON
    return _CAPABILITIES.get(torch.backends.cpu.get_cpu_capability(), PORTABLE)


def lanes_for(target: Target, dtypes: Iterable[DType]) -> int:
    """Return how many elements a kernel computes at once, if these are the dtypes that it computes
    with: as many as of the widest fit in one vector. Half types and bools count as 32 bits, since
    they are computed with as such."""
    widest = max((max(d.bits, 32) for d in dtypes), default=32)
    return target.register_bytes * 8 // widest
