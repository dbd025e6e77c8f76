"""The passes that programs go through for each lowering."""

from __future__ import annotations

from typing import assert_never

from ...config import current
from ...kernels.backend import Backend
from ...kernels.pipeline import CUT, fused
from ...passes.insertion import with_inserted
from ...passes.manager import Pipeline, up_to
from ...passes.pipeline import DEBUGGED, EVALUATED, called, in_layout
from .lowerings import Lowering, Plain


def pipeline_of(lowering: Lowering, gradients: tuple[int, ...] | None = None) -> Pipeline:
    """Return the passes that a program goes through for a lowering, under the options in effect and
    with the passes that are inserted. `gradients` leads to the gradients in its result that may be
    pairs of factors; None if none may."""
    phases = _plain(lowering, gradients)
    if lowering is not Plain.DEBUGGER:
        phases = in_layout(phases, current().layout)
    return with_inserted(phases)


def pipeline_to(phase: str, lowering: Lowering, gradients: tuple[int, ...] | None) -> Pipeline:
    """Return the passes of a lowering up to a phase; where it has no such phase, those of
    kernels. Raises KeyError if these have none either."""
    phases = pipeline_of(lowering, gradients)
    return up_to(phases if any(p.name == phase for p in phases) else with_inserted(CUT), phase)


def _plain(lowering: Lowering, gradients: tuple[int, ...] | None) -> Pipeline:
    match lowering:
        case Plain.EVALUATOR:
            return EVALUATED
        case Plain.TORCH:
            return called(gradients)
        case Plain.DEBUGGER:
            return DEBUGGED
        case Backend():
            return fused(lowering.passes, lowering.cuts, gradients)
        case _:
            assert_never(lowering)
