"""The cases of `benchmarks/performance.py`, in the order of its table."""

from __future__ import annotations

from typing import Final

from . import blocks, elements, loops, networks, recurrent
from .case import Case

CASES: Final[tuple[Case, ...]] = (
    *networks.CASES,
    *blocks.CASES,
    *recurrent.CASES,
    *elements.CASES,
    *loops.CASES,
)
