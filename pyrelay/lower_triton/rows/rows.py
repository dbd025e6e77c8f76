"""Kernels of a pass with reductions: each program takes some rows of a domain, or part of them.

A row that fits into a block is read once and stays in registers, of one processor or, where the
device has clusters of processors that reach into each other's memory, of up to eight. A longer one
is gone through once for each stage: reductions that need no other's result are made in the first
loop, those that need only these in the second, and so on; what is stored for each place is stored
in the first loop that can, or in a last one. Where there are few long rows, several programs take a
piece of each (`pieces`), if by the model of `configs` that takes less time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...kernels.calling import Layout
from ...kernels.groups import Group
from ...kernels.plans.row_reuse import moved_in_loops, registers_per_element
from ...kernels.plans.rows import RowPlan, row_plan
from ..kernel import Kernel, Lowered, Target
from .configs import (
    few_rows,
    longest_block,
    longest_loop,
    longest_read_once,
    loop_configs,
    one_block_configs,
)
from .pieces import in_pieces
from .text import RowText

SMALLEST: Final = 16
"""Blocks of fewer elements of a row are not made for rows of unknown length."""


def lower_rows(group: Group, layout: Layout, target: Target) -> Lowered:
    """Return the kernels of a group that is a pass with reductions. Raises NoKernel where one row
    needs what a reduction gives for another."""
    plan = row_plan(group, layout)
    share, whole = _share(plan), longest_row(plan, target.processors)
    size = plan.reduced.constant
    if size is not None and size <= whole:
        return Lowered((_one_block(group, plan, layout, size, share),))
    chosen = _long(group, plan, layout, target)
    if size is not None:
        return chosen
    block = whole
    while block >= SMALLEST:
        kernel = _one_block(group, plan, layout, block, share)
        chosen = Lowered((kernel,), limits=((plan.reduced, block),), otherwise=chosen)
        block //= 2
    return chosen


def longest_row(plan: RowPlan, processors: int) -> int:
    """Return how long a row is at most that is one block, where so many processors may share it: no
    longer than it stays in registers, nor than it must to be read once."""
    if plan.passes > 1:
        return _share(plan) * processors
    return min(_share(plan), longest_read_once(plan.is_column))


def _share(plan: RowPlan) -> int:
    """Return how much of a row one processor holds."""
    return longest_block(registers_per_element(plan), is_column=plan.is_column)


def _long(group: Group, plan: RowPlan, layout: Layout, target: Target) -> Lowered:
    """Return the kernels for rows that take several blocks: a loop, or pieces where there are few
    rows and they are long."""
    loop = Lowered((_looped(group, plan, layout),))
    few, count = few_rows(plan.is_column), plan.kept.constant
    kernels = len(plan.stages) + 1
    most = longest_loop(kernels, moved_in_loops(plan), is_column=plan.is_column)
    size = plan.reduced.constant
    if (count is not None and count > few) or (size is not None and size <= most):
        return loop
    pieces = Lowered(in_pieces(group, plan, layout))
    if count is None:
        pieces = replace(pieces, limits=((plan.kept, few),), otherwise=loop)
    if size is not None or most <= longest_row(plan, target.processors):
        return pieces
    return replace(loop, limits=((plan.reduced, most),), otherwise=pieces)


def _one_block(group: Group, plan: RowPlan, layout: Layout, longest: int, share: int) -> Kernel:
    """Return the kernel for rows of at most so many elements: each is one block, of which one
    processor holds `share`."""
    configs = one_block_configs(plan.kept, longest, is_column=plan.is_column, share=share)
    text = RowText(group, plan, layout, configs, is_looped=False)
    text.begin()
    text.outer.line(f"along = {text.places(None)}")
    if text.along_inside is not None:
        text.outer.line(f"{text.along_inside} = along < {text.count}")
    for stage in plan.stages:
        for reduction in stage:
            text.row.whole(reduction, text.along_inside)
    for stored in plan.stored:
        text.store(text.outer, stored)
    return text.finish()


def _looped(group: Group, plan: RowPlan, layout: Layout) -> Kernel:
    """Return the kernel for rows of any length: a loop over blocks for each stage."""
    configs = loop_configs(plan.kept, plan.reduced, is_column=plan.is_column)
    text = RowText(group, plan, layout, configs)
    text.begin()
    for stage in range(plan.passes):
        text.loop(plan.reductions(stage), plan.stored_in(stage))
        text.row.finish(plan.reductions(stage), text.taken(text.count))
    for stored in plan.stored_for_rows:
        text.store(text.outer, stored)
    return text.finish()
