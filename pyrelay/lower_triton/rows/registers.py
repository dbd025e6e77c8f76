"""How much of a row must stay in registers for the row to be read once.

A row that is one block is not read again: what is computed of it before a reduction, or before a
store, and used afterwards has to stay. How many such values each element has decides how long the
row of one processor may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..terms import Term, Terms
from .plan import REDUCED, Plan

_REGISTER: Final = 32
"""The bits of a register."""


def held(plan: Plan) -> int:
    """Return how many registers an element of a row takes: the most that what is needed later
    fills. What is loaded and used up in between counts half, since it need not be there for all
    elements at once."""
    phases = _phases(plan)
    lying = _along(plan.supplier.terms, [t for phase in phases for t in phase])
    first = {t: number for number, phase in enumerate(phases) for t in phase if t in lying}
    last = dict(first)
    for number, phase in enumerate(phases):
        used = (b for t in phase for b in plan.supplier.terms.before(t))
        last |= {t: number for t in used if t in lying}
    asked = _asked(plan)
    last |= {t: max(last[t], number) for number, t in enumerate(asked) if t in lying}
    most = 0
    for number in range(1, len(phases)):
        kept = sum(_registers(t) for t in lying if first[t] < number <= last[t])
        passing = sum(_registers(t) for t in lying if first[t] == number and t.op == "load")
        most = max(most, kept + passing // 2 if kept else 0)
    return most


def _asked(plan: Plan) -> list[Term]:
    """Return what a kernel computes one after another: the operands of its reductions, and what it
    stores."""
    reductions = (r for stage in plan.stages for r in stage)
    return [*(r.operand for r in reductions), *(s.term for s in plan.stored)]


def _phases(plan: Plan) -> list[list[Term]]:
    """Return the terms that are computed for each of what is asked for, and not before."""
    seen: set[Term] = set()
    phases: list[list[Term]] = []
    for root in _asked(plan):
        new = [t for t in plan.supplier.terms.needed([root]) if t not in seen]
        seen.update(new)
        phases.append(new)
    return phases


def _along(terms: Terms, needed: Iterable[Term]) -> set[Term]:
    """Return the terms that differ along a row, without places, which are easily made again."""
    found: set[Term] = set()
    for term in sorted(needed, key=lambda t: t.number):
        if term.op == "result":
            continue
        is_own = any(REDUCED in dim.names() for dim in terms.dims(term))
        if is_own or not found.isdisjoint(terms.before(term)):
            found.add(term)
    return {t for t in found if t.op != "size"}


def _registers(term: Term) -> int:
    assert term.dtype is not None
    return max(1, term.dtype.bits // _REGISTER)
