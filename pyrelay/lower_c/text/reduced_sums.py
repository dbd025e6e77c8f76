"""Passes with reductions around sums of products: of rows of what is made of them, and beside
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.dims import ONE, product
from ...kernels.calling import NoKernel
from ...kernels.plans.contraction import ContractionPlan
from ...kernels.plans.rows import RowPlan, Stored
from ...kernels.plans.supplier import Store
from ...kernels.plans.terms import Term
from .cost import cost_of
from .emit import KernelText
from .rows import go_through

PLACE: Final = ("batch", "m", "n")
"""The coordinates of a sum."""

_USUAL: Final = 256
"""A count that only the call knows."""


def are_last(plan: ContractionPlan) -> bool:
    """Return whether the reductions come after all else: no other, and nothing that is stored for
    each place, needs the result of one."""
    results = {t for r in plan.reductions for t in r.results}
    whole = [store.term for store, is_whole in plan.stores if is_whole]
    needed = plan.supplier.terms.needed([*whole, *(r.operand for r in plan.reductions)])
    return results.isdisjoint(needed)


def write_rows_of_sums(
    code: KernelText, plan: ContractionPlan, loaded: Mapping[Term, Term], *, is_last: bool
) -> None:
    """Write the pass over rows of sums that reduces them, and what is stored of that. `loaded` are
    terms that were stored before, the results of the sums or what is reduced, with the terms that
    load them; if it `is_last`, what is stored for each place has been stored, too."""
    sorts = plan.sorts
    stored = tuple(
        Stored(store, is_whole, _stages_before(plan, store))
        for store, is_whole in plan.stores
        if (not is_last if is_whole else not _is_beside(plan, store))
    )
    sizes = zip(PLACE, (sorts.batch.count, sorts.rows.count, sorts.columns.count), strict=True)
    *kept, reduced = [(name, size) for name, size in sizes]
    rows = product(tuple(size for _, size in kept))
    stages = (plan.reductions,) if is_last else tuple((r,) for r in plan.reductions)
    passed = RowPlan(plan.supplier, rows, reduced[1], False, stages, stored)
    lines = go_through(
        code,
        passed,
        tuple((n, s) for n, s in kept if s != ONE),
        (reduced,) if reduced[1] != ONE else (),
        loaded,
    )
    each = 2 * len(plan.reductions) if is_last else cost_of(code.terms, passed.roots)
    cost = each * (reduced[1].constant or _USUAL)
    code.loop("_rows", str(code.dims.size(rows)), cost, lines)


def _stages_before(plan: ContractionPlan, store: Store) -> int:
    """Return after how many of the reductions a stored value is known."""
    needed = set(plan.supplier.terms.needed([store.term]))
    numbered = enumerate(plan.reductions, start=1)
    return max((n for n, r in numbered if not needed.isdisjoint(r.results)), default=0)


def _is_beside(plan: ContractionPlan, store: Store) -> bool:
    """Return whether what is stored is made of reductions beside the sums."""
    beside = {t for r in plan.beside for t in r.results}
    return not beside.isdisjoint(plan.supplier.terms.needed([store.term]))


def write_beside(code: KernelText, plan: ContractionPlan) -> None:
    """Write the passes of reductions beside the sums, and what is stored of them."""
    stores = [s for s, is_whole in plan.stores if not is_whole]
    if plan.reductions:
        stores = [s for s in stores if _is_beside(plan, s)]
    if not stores:
        return
    rows = plan.sorts.rows.count
    loops = {product(r.reduced.domain.along) for r in plan.beside}
    if len(loops) != 1:
        raise NoKernel("reductions beside sums of products go along several loops")
    (count,) = loops
    stored = tuple(Stored(s, False, 1) for s in stores)
    passed = RowPlan(plan.supplier, rows, count, False, (plan.beside,), stored)
    kept = (("m", rows),) if rows != ONE else ()
    reduced = ((plan.loops[count], count),) if count != ONE else ()
    lines = go_through(code, passed, kept, reduced)
    cost = cost_of(code.terms, [r.operand for r in plan.beside]) * (count.constant or _USUAL)
    code.loop("_beside", str(code.dims.size(rows)), cost, lines)
