"""From a simplified program to kernels and regions: the steps, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from .apart import take_apart
from .decompose import decompose
from .fuse import fuse
from .outline import outline

if TYPE_CHECKING:
    from ...ir.module import Module
    from .notes import Apart, Note


@final
@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """A program whose tensor code is in functions of its own: the names of the kernel functions and
    of the region functions that call them, why what is stored between kernels is, and why products
    that read the same are in several."""

    module: Module
    kernels: tuple[str, ...]
    regions: tuple[str, ...]
    notes: tuple[Note, ...]
    apart: tuple[Apart, ...]


def make_regions(module: Module, entry: str) -> Regions:
    """Give a simplified module, in A-normal form and without transforms, cut into kernels and
    regions."""
    fused = fuse(take_apart(decompose(module, entry), entry))
    made, regions = outline(fused.module, fused.kernels)
    return Regions(made, fused.kernels, regions, fused.notes, fused.apart)
