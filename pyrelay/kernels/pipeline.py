"""The passes that take tensor code out as kernels and regions, after those of `passes.pipeline`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..passes.base import Pass
from ..passes.manager import Phase, Pipeline
from ..passes.pipeline import DEBUGGED, EVALUATED, STANDALONE, called, fusible
from .fusion.decompose import Decompose
from .fusion.fuse import Fuse
from .fusion.outline import Outline
from .fusion.own_calls import OwnCalls
from .fusion.segments import Segments
from .fusion.split_slices import SplitSlices

REGIONS: Final = Phase("regions", (Decompose(), SplitSlices(), Fuse(), Outline()))

CUT: Final[Pipeline] = (*fusible(), REGIONS)
"""Programs in kernels and regions."""


def fused(
    passes: Sequence[Pass], cuts: Sequence[Pass], gradients: tuple[int, ...] | None = None
) -> Pipeline:
    """Return the phases of programs whose kernels a backend makes: `cuts` take more kernels out
    than fusion does, and the last phase has the passes of the backend, if it has any. `gradients`
    is as for `fusible`."""
    *rest, outline = REGIONS.passes
    regions = Phase(REGIONS.name, (*rest, *cuts, outline)) if cuts else REGIONS
    launched = (Phase("launched", tuple(passes)),) if passes else ()
    return (*fusible(gradients), regions, *launched)


def all_passes() -> Mapping[str, Pass]:
    """Return every pass of the package by its name, in the order of the pipelines."""
    phases = (phase for pipeline in (EVALUATED, called(()), DEBUGGED, CUT) for phase in pipeline)
    listed = (step for phase in phases for step in phase.passes)
    return {step.name: step for step in (*listed, OwnCalls(), Segments(), *STANDALONE)}
