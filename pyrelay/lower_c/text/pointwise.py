"""Passes over places: pointwise kernels, and updates.

The dims of the places are few nested loops (`loops`), so that what an operand is read at is linear
in each and no integer is divided for an element. The last has the lanes of vectors.
"""

from __future__ import annotations

from typing import Final

from ...ir.dims import ONE, product
from ...kernels.calling import Layout
from ...kernels.groups import Group
from ...kernels.plans.pointwise import PlacesPlan, places_plan, updates_plan
from ...kernels.plans.supplier import Store
from ..kernel import Kernel
from ..math import Target
from .block import Block
from .blocked import ROWS, count_of_blocks, has_transposed, in_blocks
from .cost import LONG, cost_of, vectors_at_once
from .emit import KernelText
from .loops import Nest, dims_of, grouped, merged, named

PREFIX: Final = "%"
"""How the names of coordinates begin; no size has such a name."""


def lower_pointwise(group: Group, layout: Layout, target: Target, name: str = "") -> Kernel:
    """Return the kernel of a pointwise group."""
    plan = nested_plan(group, layout)
    kernel = _kernel(group, plan, layout, target, name)
    sizes = grouped(plan.sizes, kernel.lanes)
    if sizes == plan.sizes or len(sizes) == 1:
        return _passed(kernel, plan)
    rows = places_plan(group, layout, [f"{PREFIX}{axis}" for axis in range(len(sizes))], sizes)
    of_rows = _kernel(group, rows, layout, target, name)
    return _passed(of_rows, rows) if _is_regular(of_rows, rows) else _passed(kernel, plan)


def passed(group: Group, plan: PlacesPlan, layout: Layout, target: Target, name: str) -> Kernel:
    """Return the kernel of one pass over places."""
    return _passed(_kernel(group, plan, layout, target, name), plan)


def _kernel(
    group: Group, plan: PlacesPlan, layout: Layout, target: Target, name: str
) -> KernelText:
    """Return the kernel in the making, with its vectors chosen."""
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places, target, name)
    names = _coordinates(plan)
    dtypes = [s.target.dtype for s in plan.stores]
    kernel.choose_lanes(plan.roots, dtypes, names[-1] if names else None, layout)
    row = plan.sizes[-1].constant if len(names) > 1 else None
    kernel.row = row if row is not None and row <= _SHORT * kernel.lanes else None
    return kernel


_SHORT: Final = 4
"""Rows of known size and at most so many vectors are not divided: C knows the lanes of each."""


def _coordinates(plan: PlacesPlan) -> tuple[str, ...]:
    return tuple(d.name for d in plan.index if d.name is not None)


def _is_regular(kernel: KernelText, plan: PlacesPlan) -> bool:
    """Return whether all that is read and stored lies at places that C knows apart from the first,
    when the rows of a pass are vectors."""
    block = Block(kernel, [], _coordinates(plan)[-1])
    stored = (s.at for s in plan.stores)
    return all(
        block.linear_step(place) is not None or block.places_apart(place) is not None
        for place in (*plan.offsets, *stored)
    )


def _passed(kernel: KernelText, plan: PlacesPlan) -> Kernel:
    names = _coordinates(plan)
    kernel.count(plan.roots)
    if names and not any(list(kernel.terms.found(s.at)) for s in plan.stores):
        kernel.at_once = vectors_at_once(kernel.terms, plan.roots)
    cost, count = cost_of(kernel.terms, plan.roots), plan.count
    kernel.is_long = cost * kernel.at_once > LONG
    if kernel.row is not None:
        vectors = -(-kernel.row // kernel.lanes)
        kernel.at_once = next(n for n in (8, 4, 2, 1) if n <= kernel.at_once and vectors % n == 0)
        kernel.is_long = kernel.at_once > 1
        cost, count = cost * vectors, product(plan.sizes[:-1])
    sizes = tuple(size for size in plan.sizes if size != ONE)
    nest = Nest(names, sizes, named(kernel, len(names)))

    def inside(block: Block) -> None:
        for store in plan.stores:
            block.store(store)

    if kernel.row is None and has_transposed(kernel.terms, plan.offsets, names):
        kernel.at_once, kernel.is_long = 1, False
        lines = in_blocks(kernel, nest, plan.roots, inside)
        each = f"{cost * ROWS} * {kernel.dims.size(sizes[-1]).inside(7)}"
        kernel.loop("", count_of_blocks(kernel, nest), each, lines)
        return kernel.finish()
    lines = nest.write(kernel, inside, by_row=kernel.row is not None)
    kernel.loop("", str(kernel.dims.size(count)), cost, lines)
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
