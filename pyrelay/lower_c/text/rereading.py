"""What the loops over a row keep for later ones: in the row of an output that is not yet there.

The exponentials of a softmax are needed for their sum and then for each element of the result. They
are stored where the result will be, and read from there when it is made: it is storage of the
kernel's own, no operand lies in it, and each place is read before it is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from ...dataclass import dataclass
from ...ir.types import is_float
from ...kernels.plans.reductions import Reduction
from ...kernels.plans.rows import RowPlan, Stored
from ...kernels.plans.supplier import Store
from ...kernels.plans.terms import Term, Terms
from .cost import cost_of, is_function


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """One time through a row: the reductions that are made, and what is stored."""

    reductions: tuple[Reduction, ...]
    stored: tuple[Stored, ...]

    @property
    def roots(self) -> list[Term]:
        """The terms that it asks for."""
        return [*(r.operand for r in self.reductions), *(s.store.term for s in self.stored)]


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """A term that the loop `made` stores at the places of `store`, and later ones load: up to the
    loop `last`, which stores the output there."""

    made: int
    last: int
    store: Store

    def is_loaded_in(self, number: int) -> bool:
        """Return whether the term lies there in a loop that did not make it."""
        return self.made < number <= self.last


def loops_of(plan: RowPlan) -> tuple[Loop, ...]:
    """Return the loops over a row of a pass, in order."""
    found: list[Loop] = []
    for stage in range(plan.passes):
        reductions = plan.reductions(stage)
        leaders = tuple(r for r in reductions if r.online is None)
        found.append(Loop(leaders, plan.stored_in(stage)))
        found.append(Loop(tuple(r for r in reductions if r.online is not None), ()))
    return tuple(loop for loop in found if loop.roots)


def kept_of(terms: Terms, loops: Sequence[Loop], moves: Callable[[Term], bool]) -> tuple[Kept, ...]:
    """Return functions of elements that several loops need, with where the first keeps them: each
    output has room for one, until it is stored itself, those of the last loops first. `moves`
    returns whether a term is one of elements."""
    needed = [frozenset(filter(is_function, terms.needed(loop.roots))) for loop in loops]
    found: list[Kept] = []
    taken: set[Term] = set()
    outputs = [(n, s.store) for n, loop in enumerate(loops) for s in loop.stored]
    for place, output in sorted(outputs, key=lambda found: -found[0]):
        if output.target.overwrites is not None or not is_float(output.target.dtype):
            continue
        shared = [
            (cost_of(terms, [term]), first, term)
            for first in range(place)
            for term in needed[first] & needed[place]
            if term.dtype == output.target.dtype and term not in taken and moves(term)
        ]
        if not shared:
            continue
        _, first, term = max(shared, key=lambda s: (s[0], -s[1], s[2].number))
        taken.add(term)
        found.append(Kept(first, place, Store(output.target, output.name, output.at, term)))
    return tuple(found)
