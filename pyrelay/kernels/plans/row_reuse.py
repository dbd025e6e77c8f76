"""How much of a row stays in registers, and how much of it is read again.

A row that stays in registers is not read again: what is computed of it before a reduction, or
before a store, and used afterwards has to stay. How many such values each element has decides how
long such a row may be. Loops over a longer row read it once for each stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...ir.dims import ONE, ZERO, Dim
from .rows import KEPT, REDUCED, RowPlan
from .terms import Access, Term

_REGISTER: Final = 32
"""The bits of a register."""


def registers_per_element(plan: RowPlan) -> int:
    """Return how many registers an element of a row takes: the most that what is needed later
    fills. What is loaded and used up in between counts half, since it need not be there for all
    elements at once."""
    phases = _phases(plan)
    varying = plan.supplier.terms.varying(plan.roots, (REDUCED,))
    lying = {t for t in varying if t.op != "size"}  # places are easily made again
    first = {t: number for number, phase in enumerate(phases) for t in phase if t in lying}
    last = dict(first)
    for number, phase in enumerate(phases):
        used = (b for t in phase for b in plan.supplier.terms.before(t))
        last |= {t: number for t in used if t in lying}
    last |= {t: max(last[t], number) for number, t in enumerate(plan.roots) if t in lying}
    most = 0
    for number in range(1, len(phases)):
        kept = sum(_registers(t) for t in lying if first[t] < number <= last[t])
        passing = sum(_registers(t) for t in lying if first[t] == number and t.op == "load")
        most = max(most, kept + passing // 2 if kept else 0)
    return most


def _phases(plan: RowPlan) -> list[list[Term]]:
    """Return the terms that are computed for each of what is asked for, and not before."""
    seen: set[Term] = set()
    phases: list[list[Term]] = []
    for root in plan.roots:
        new = [t for t in plan.supplier.terms.needed([root]) if t not in seen]
        seen.update(new)
        phases.append(new)
    return phases


def _registers(term: Term) -> int:
    assert term.dtype is not None
    return max(1, term.dtype.bits // _REGISTER)


def moved_in_loops(plan: RowPlan) -> int:
    """Return the bytes that loops over a row move for each element of it."""
    loaded = sum(a.dtype.bits // 8 for loop in _loops(plan) for a in loop)
    return loaded + sum(s.store.target.dtype.bits // 8 for s in plan.stored if s.is_whole)


def read_again(plan: RowPlan) -> Dim:
    """Return the bytes that loops over the rows read a second time, and a third."""
    seen: set[Access] = set()
    total = ZERO
    for loop in _loops(plan):
        for access in loop:
            if access in seen:
                places = plan.kept if KEPT in access.offset.names() else ONE
                total = total + plan.reduced * places * (access.dtype.bits // 8)
            seen.add(access)
    return total


def _loops(plan: RowPlan) -> Iterator[list[Access]]:
    """Return the loads along a row in each loop over it, each place once."""
    terms = plan.supplier.terms
    for stage in range(plan.passes):
        roots = [r.operand for r in plan.reductions(stage)]
        needed = terms.needed([*roots, *(s.store.term for s in plan.stored_in(stage))])
        loads = [t.detail for t in needed if isinstance(t.detail, Access)]
        yield list(dict.fromkeys(a for a in loads if REDUCED in a.offset.names()))
