"""Passes over places: pointwise kernels, and updates.

The dims of the places are few nested loops (`loops`), so that what an operand is read at is linear
in each and no integer is divided for an element. The last has the lanes of vectors.
"""

from __future__ import annotations

from typing import Final

from ...ir.dims import ONE
from ...kernels.calling import Layout
from ...kernels.groups import Group
from ...kernels.plans.pointwise import PlacesPlan, places_plan, updates_plan
from ...kernels.plans.supplier import Store
from ..math import Target
from .block import Block
from .cost import LONG, cost_of, vectors_at_once
from .emit import KernelText
from .kernel import Kernel
from .loops import Nest, dims_of, merged, named

PREFIX: Final = "%"
"""How the names of coordinates begin; no size has such a name."""


def lower_pointwise(group: Group, layout: Layout, target: Target, name: str = "") -> Kernel:
    """Return the kernel of a pointwise group."""
    return passed(group, nested_plan(group, layout), layout, target, name)


def passed(group: Group, plan: PlacesPlan, layout: Layout, target: Target, name: str) -> Kernel:
    """Return the kernel of one pass over places."""
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places, target, name)
    names = tuple(d.name for d in plan.index if d.name is not None)
    dtypes = [s.target.dtype for s in plan.stores]
    kernel.choose_lanes(plan.roots, dtypes, names[-1] if names else None, layout)
    kernel.count(plan.roots)
    if names and not any(list(kernel.terms.found(s.at)) for s in plan.stores):
        kernel.at_once = vectors_at_once(kernel.terms, plan.roots)
    cost = cost_of(kernel.terms, plan.roots)
    kernel.is_long = cost * kernel.at_once > LONG
    sizes = tuple(size for size in plan.sizes if size != ONE)
    nest = Nest(names, sizes, named(kernel, len(names)))

    def inside(block: Block) -> None:
        for store in plan.stores:
            block.store(store)

    lines = nest.write(kernel, inside)
    kernel.loop("", str(kernel.dims.size(plan.count)), cost, lines)
    return kernel.finish()


def lower_updates(group: Group, layout: Layout, target: Target, name: str = "") -> Kernel:
    """Return the kernel of a group whose outputs have different numbers of elements: a loop for
    each."""
    plan = updates_plan(group, layout)
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places, target, name)
    stores = [store for _, _, store in plan.passes]
    roots = [s.term for s in stores]
    # The passes have coordinates of their own, so every value counts.
    dtypes = [t.dtype for t in kernel.terms.needed(roots) if t.dtype is not None]
    kernel.choose_lanes((), [*dtypes, *(s.target.dtype for s in stores)], None, layout)
    kernel.count(roots)
    for number, (coordinate, count, store) in enumerate(plan.passes):
        names, sizes = ((), ()) if count == ONE else ((coordinate,), (count,))
        nest = Nest(names, sizes, named(kernel, len(names)))

        def inside(block: Block, store: Store = store) -> None:
            block.store(store)

        lines = nest.write(kernel, inside)
        cost = cost_of(kernel.terms, [store.term])
        kernel.loop(f"_{number}", str(kernel.dims.size(count)), cost, lines)
    return kernel.finish()


def nested_plan(group: Group, layout: Layout) -> PlacesPlan:
    """Return the plan of a pointwise pass over as few nested dims as its operands allow."""
    shape = tuple(d for d in group.shape if d != ONE)
    names = [f"{PREFIX}{axis}" for axis in range(len(shape))]
    plan = places_plan(group, layout, names, shape)
    dims = [*dims_of(plan.supplier.terms, plan.roots), *(s.at for s in plan.stores)]
    sizes = merged(names, shape, dims)
    if sizes == shape:
        return plan
    return places_plan(group, layout, names[: len(sizes)], sizes)
