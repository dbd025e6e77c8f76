"""Instruction sets that C is generated for, and the vectors they have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from ...cpu import cpu
from ...dataclass import dataclass
from ...ir.types import DType


@final
@dataclass(frozen=True, slots=True)
class Target:
    """An instruction set: `register_bytes` is the size of its vectors."""

    name: str
    register_bytes: int
    has_fma: bool


AVX512: Final = Target("avx512", 64, has_fma=True)
AVX2: Final = Target("avx2", 32, has_fma=True)
NEON: Final = Target("neon", 16, has_fma=True)
PORTABLE: Final = Target("portable", 16, has_fma=False)

TARGETS: Final = {t.name: t for t in (AVX512, AVX2, NEON, PORTABLE)}


def host_target() -> Target:
    """Return the widest instruction set of this machine."""
    found = cpu()
    if found.machine in ("aarch64", "arm64"):
        return NEON
    return {64: AVX512, 32: AVX2}.get(found.vector_bytes, PORTABLE)


def lanes_for(target: Target, dtypes: Iterable[DType]) -> int:
    """Return how many elements a kernel computes at once, if these are the dtypes that it computes
    with: as many as of the widest fit in one vector. Half types and bools count as 32 bits, since
    they are computed with as such."""
    widest = max((max(d.bits, 32) for d in dtypes), default=32)
    return target.register_bytes * 8 // widest
