"""What a pass with reductions moves of a row: once if it stays in registers, more in loops."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.dims import ZERO, Dim
from ...ir.expr import type_of
from ...kernels.cost import bytes_of
from ..terms import Access
from .plan import KEPT, REDUCED, Plan


def moved_in_loops(plan: Plan) -> int:
    """Return the bytes that loops over a row move for each element of it."""
    loaded = sum(a.dtype.bits // 8 for loop in _loops(plan) for a in loop)
    return loaded + sum(bytes_of(type_of(s.output.value)) for s in plan.stored if s.is_whole)


def read_again(plan: Plan) -> Dim:
    """Return the bytes that loops over the rows read a second time, and a third."""
    seen: set[Access] = set()
    total = ZERO
    for loop in _loops(plan):
        for access in loop:
            if access in seen:
                total = total + _places(plan, access) * (access.dtype.bits // 8)
            seen.add(access)
    return total


def _loops(plan: Plan) -> Iterator[list[Access]]:
    """Return what is loaded along a row in each loop over it, each place once."""
    terms = plan.supplier.terms
    for stage in range(plan.passes):
        roots = [r.operand for r in plan.reductions(stage)]
        needed = terms.needed([*roots, *(s.term for s in plan.stored_in(stage))])
        loads = [t.detail for t in needed if isinstance(t.detail, Access)]
        yield list(dict.fromkeys(a for a in loads if REDUCED in a.offset.names()))


def _places(plan: Plan, access: Access) -> Dim:
    return plan.reduced * plan.kept if KEPT in access.offset.names() else plan.reduced
