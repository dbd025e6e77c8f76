"""Operands that lie along a short reduced dim, turned so that they lie along the kept one.

In `((x[:, None] - y[None]) ** 2).sum(2)` a row of few elements is a fraction of a vector, and its
lanes are combined for each sum. As all rows of `x` meet the same `y`, turning it costs little
beside what follows, and then each lane is a sum of its own. Where only the call knows the sizes, C
has both loops and chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.dims import ONE, Dim, product
from ...kernels.calling import Scratch
from ...kernels.places import step_along
from ...kernels.plans.code import Axis
from ...kernels.plans.rows import Coordinates, RowPlan
from ...kernels.plans.terms import Access, Term
from .block import Block
from .emit import KernelText
from .rereading import loops_of

_LONGEST: Final = 256
"""Rows of more elements are gone through along the reduced dim."""

_FEWEST: Final = 8
"""With fewer rows that meet an operand it is not turned."""

IS_TURNED: Final = "is_turned"
"""The name of the number that is 1 if operands are turned."""


def turned_loads(plan: RowPlan, kept: Coordinates, reduced: Coordinates) -> tuple[Term, ...]:
    """Return the loads of the operands that are worth turning: after that, everything lies along
    the last kept dim or is one number for all of it. Empty where that cannot be."""
    loops = loops_of(plan)
    is_plain = len(loops) == 1 and not loops[0].stored
    if len(kept) < _DIMS or len(reduced) != 1 or not is_plain:
        return ()
    if (plan.reduced.constant or 0) > _LONGEST:
        return ()
    if any(r.is_pair for r in loops[0].reductions):
        return ()
    (*rows, (lane, _)), ((along, _),) = kept, reduced
    found: list[Term] = []
    for term in plan.supplier.terms.needed(plan.roots):
        access = term.detail
        if not isinstance(access, Access) or lane not in access.offset.names():
            continue
        steps = (step_along(access.offset, lane), step_along(access.offset, along))
        if steps[0] == ONE:
            continue
        is_shared = access.offset.names().isdisjoint(name for name, _ in rows)
        is_whole = not term.operands and not list(plan.supplier.terms.found(access.offset))
        if steps[1] != ONE or steps[0] is None or not (is_shared and is_whole):
            return ()
        if isinstance(access.operand, str) or access.dtype != term.dtype:
            return ()
        found.append(term)
    return tuple(found)


_DIMS: Final = 2
"""One kept dim has the lanes, another the rows that meet the same operand."""


def turn(
    kernel: KernelText, loads: Sequence[Term], kept: Coordinates, reduced: Coordinates
) -> dict[Term, Term]:
    """Add the loops that turn the operands of some loads, and the condition under which they run;
    return the terms that load what is turned."""
    (lane, count), (along, length) = kept[-1], reduced[-1]
    rows, size, short = (
        kernel.dims.size(d) for d in (product(tuple(d for _, d in kept[:-1])), count, length)
    )
    condition = f"{short} <= {_LONGEST} && {size} >= {kernel.lanes} && {rows} >= {_FEWEST}"
    kernel.compute("int64_t", IS_TURNED, condition)
    found: dict[Term, Term] = {}
    for number, term in enumerate(loads):
        access, dtype = term.detail, term.dtype
        assert isinstance(access, Access)
        assert isinstance(access.operand, int)
        assert dtype is not None
        room = Scratch(number, dtype, (length, count))
        to = kernel.argument(room, f"{kernel.operand_name(access.operand)}_turned")
        block = Block(kernel, [Axis(lane, "j", None), Axis(along, "at", None)], None)
        lines = [
            "for (int64_t at = begin; at < end; at++)",
            f"    for (int64_t j = 0; j < {size}; j++)",
            f"        {to}[at * {size.inside(7)} + j] = *({block.address(access)});",
        ]
        kernel.loop(f"_turned_{number}", f"{IS_TURNED} * {short.inside(7)}", str(size), lines)
        offset = Dim.of(along) * count + Dim.of(lane)
        found[term] = kernel.terms.make("load", dtype=dtype, detail=Access(to, offset, dtype))
    return found
