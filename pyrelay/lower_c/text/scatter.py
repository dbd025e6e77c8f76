"""Scatters: the result as it starts, then additions, or stores, at places that are computed.

Additions at one place happen in order, so sums are the same from run to run. Where the additions of
neighbours lie one behind the other, as in the rows of an embedding, threads share these; else one
thread makes all. Threads share the rows of what is stored: values of one place are equal.
"""

from __future__ import annotations

from typing import Final

from ...ir.dims import ONE, Dim
from ...ir.types import bool_
from ...kernels.calling import Layout, NoKernel
from ...kernels.groups import Group
from ...kernels.plans.pointwise import PlacesPlan, places_added, scatter_additions, scatter_start
from ...kernels.plans.supplier import Store
from ...kernels.plans.terms import is_half
from ..kernel import Kernel
from ..math import Target
from .block import Block
from .cost import cost_of
from .emit import KernelText
from .loops import Nest, dims_of, merged, named
from .pointwise import PREFIX, passed

_START = "_start"

_MISS: Final = 64
"""A row of a large table that is in no cache takes as long as so many additions of vectors."""
_SHORT: Final = 128
"""Threads that share a shorter row of a table wait for the same lines of memory."""


def lower_scatter(
    group: Group, layout: Layout, target: Target, name: str = ""
) -> tuple[Kernel, ...]:
    """Return the kernels of a scatter. Raises NoKernel."""
    plan = _nested(group, layout)
    (store,) = plan.stores
    if is_half(store.target.dtype) or store.target.dtype == bool_:
        raise NoKernel(f"{store.target.dtype} is not added in memory")
    assert group.scattered is not None
    adds = group.scattered.lowering.adds
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places, target, name)
    places = [kernel.terms.coordinates[n][0] for n in kernel.terms.found(store.at)]
    roots = [*plan.roots, *places]
    coordinates = tuple(d.name for d in plan.index if d.name is not None)
    lane = coordinates[-1] if coordinates else None
    kernel.choose_lanes(roots, [store.target.dtype], lane, layout)
    kernel.count(roots)
    nest = Nest(coordinates, plan.sizes, named(kernel, len(coordinates)))

    def inside(block: Block) -> None:
        block.scatter(store, adds=adds)

    cost = cost_of(kernel.terms, plan.roots)
    width = plan.sizes[-1] if len(coordinates) > 1 else ONE
    if not adds:
        lines = nest.write(kernel, inside, by_row=len(coordinates) > 1)
        count = plan.count.exact_quotient(width)
        assert count is not None
        cost = _MISS + cost * -(-(width.constant or _SHORT) // kernel.lanes)
        kernel.loop("", str(kernel.dims.size(count)), cost, lines)
    elif lane is not None and _is_wide(width, store) and _step(kernel, lane, plan) == ONE:
        lines = nest.write(kernel, inside, is_shared=True)
        rows = plan.count.exact_quotient(plan.sizes[-1])
        cost = cost * (256 if rows is None or rows.constant is None else rows.constant)
        kernel.loop("", str(kernel.dims.size(plan.sizes[-1])), cost, lines)
    else:
        count = kernel.dims.size(plan.count)
        lines = [f"begin = 0, end = {count};", *nest.write(kernel, inside)]
        kernel.loop("", "1", cost, lines)
    start = scatter_start(group, layout)
    if start is None:
        return (kernel.finish(),)
    return passed(group, start, layout, target, f"{kernel.function_name}{_START}"), kernel.finish()


def _nested(group: Group, layout: Layout) -> PlacesPlan:
    """Return the plan of the additions over as few nested dims as the operands allow."""
    shape = tuple(d for d in places_added(group) if d != ONE)
    names = [f"{PREFIX}{axis}" for axis in range(len(shape))]
    plan = scatter_additions(group, layout, names, shape)
    terms, (store,) = plan.supplier.terms, plan.stores
    places = [terms.coordinates[n][0] for n in terms.found(store.at)]
    sizes = merged(names, shape, [*dims_of(terms, [*plan.roots, *places]), store.at])
    if sizes == shape:
        return plan
    return scatter_additions(group, layout, names[: len(sizes)], sizes)


def _is_wide(row: Dim, store: Store) -> bool:
    """Return whether threads may share a row of what is added."""
    is_table = store.target.overwrites is not None
    return row != ONE and not (is_table and row.constant in range(_SHORT))


def _step(kernel: KernelText, lane: str, plan: PlacesPlan) -> object:
    """Return how far apart the places of additions that are neighbours along the last dim lie; None
    where that differs."""
    block = Block(kernel, [], lane)
    (store,) = plan.stores
    places = (kernel.terms.coordinates[n][0] for n in kernel.terms.found(store.at))
    needed = kernel.terms.needed(places)
    moves = any(lane in d.names() for t in needed for d in kernel.terms.dims(t))
    return None if moves else block.linear_step(store.at)
