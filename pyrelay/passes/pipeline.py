"""The passes that programs go through before a backend takes over, in order.

A pipeline for torch ends here; the phases that make kernels follow in `kernels.pipeline`.
"""

from __future__ import annotations

from typing import Final

from .accumulate import Accumulate
from .base import Pass
from .closures import FirstOrder
from .manager import Phase, Pipeline
from .normalise.blame_callers import BlameCallers
from .normalise.empty_match import FillEmptyMatches
from .normalise.flavours import GroupByEffect
from .normalise.inline_joins import InlineJoins
from .normalise.lowering import InferTypes, NormalForm, SolveSizes
from .normalise.write_layouts import WriteLayouts
from .normalise.write_out import WriteOut
from .partial_eval import PartialEvaluate
from .rewrites.capture_fields import CaptureFields
from .rewrites.combine_products import CombineProducts
from .rewrites.convert_layout import ConvertLayout
from .rewrites.fold_norms import FoldNorms
from .rewrites.hoist import Hoist
from .rewrites.in_place import StoreSteps, UpdateInPlace
from .rewrites.low_rank_gradients import FactorGradients
from .rewrites.merge_slices import MergeSlices
from .rewrites.narrow_places import NarrowPlaces
from .rewrites.own_results import OwnResults
from .rewrites.peepholes import PoolFirst, TorchPeepholes
from .rewrites.row_gradients import GatherRows
from .rewrites.unroll import UnrollLoops
from .simplify.cse import ShareSubexpressions
from .simplify.dce import RemoveDead
from .simplify.fold import Fold
from .simplify.inline import Inline
from .simplify.promote_refs import PromoteRefs
from .simplify.simplify import Simplify
from .transforms import ExpandTransforms

TYPED: Final = Phase("typed", (InferTypes(),))
ANF: Final = Phase("anf", (NormalForm(), SolveSizes(), BlameCallers(), WriteLayouts()))
LAID: Final = Phase("anf", (*ANF.passes[:-1], ConvertLayout(), ANF.passes[-1]))
"""With convolutions in the layout NHWC, where the option `layout` asks for it."""
MERGED: Final = Phase("merged", (MergeSlices(),))
"""For torch alone: a call costs it more than the slice does, and kernels read slices in place."""
UNROLLED: Final = Phase("unrolled", (UnrollLoops(),))
"""For kernels alone: a call of torch ends where it does, in a round or out of one."""
GRAD: Final = Phase(
    "grad",
    # Gradients make functions over every type that they meet, empty ones included.
    (
        FillEmptyMatches(),
        PromoteRefs(),
        PoolFirst(),
        ExpandTransforms(),
        FillEmptyMatches(),
        WriteOut(),
    ),
)

EVALUATED: Final[Pipeline] = (TYPED, ANF, GRAD, Phase("simplified", (OwnResults(),)))
"""The pipeline of the reference evaluator: nothing is optimised."""

DEBUGGED: Final[Pipeline] = (
    TYPED,
    ANF,
    Phase("joined", (InlineJoins(),)),
    GRAD,
    Phase("simplified", (OwnResults(), GroupByEffect())),
)
"""The pipeline of debugging: each function of the source is one frame."""


def fusible(gradients: tuple[int, ...] | None = None) -> Pipeline:
    """Return the phases up to fusion. `gradients` leads to the gradients in the result of the entry
    that may be returned as factors; None if none may."""
    steps = (
        Simplify(),
        *_algebra(gradients),
        CaptureFields(),
        UpdateInPlace(),
        StoreSteps(),
        NarrowPlaces(),
        OwnResults(),
        GroupByEffect(),
    )
    return (TYPED, ANF, UNROLLED, GRAD, Phase("simplified", (*steps, *_factored(gradients))))


def called(gradients: tuple[int, ...] | None = None) -> Pipeline:
    """Return the phases of programs that call torch operator by operator, with factors as above."""
    steps = (
        Simplify(),
        # A product of torch costs less than several; kernels of C are as fast one by one.
        CombineProducts(),
        *_algebra(gradients),
        TorchPeepholes(),
        RemoveDead(),
        CaptureFields(),
        UpdateInPlace(),
        OwnResults(),
        GroupByEffect(),
    )
    return (TYPED, ANF, MERGED, GRAD, Phase("simplified", (*steps, *_factored(gradients))))


def _algebra(gradients: tuple[int, ...] | None) -> tuple[Pass, ...]:
    return Hoist(), Accumulate(gradients), GatherRows(gradients), Simplify()


def _factored(gradients: tuple[int, ...] | None) -> tuple[Pass, ...]:
    return () if gradients is None else (FactorGradients(gradients), GroupByEffect())


def in_layout(pipeline: Pipeline, layout: str) -> Pipeline:
    """Return the phases of programs whose images have the layout that the option `layout` names."""
    if layout == "written":
        return pipeline
    return tuple(LAID if phase is ANF else phase for phase in pipeline)


STANDALONE: Final[tuple[Pass, ...]] = (
    Inline(),
    Fold(),
    ShareSubexpressions(),
    FirstOrder(),
    PartialEvaluate(),
    FoldNorms(),
    ConvertLayout(),
)
"""Passes that others run as a part of their work, and that can be run by themselves."""
