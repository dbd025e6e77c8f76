"""Kernels of passes over places: pointwise, updates, and the two halves of a scatter.

The places of a pass are numbered row by row, and each program takes a block of them. Outputs are
stored in that order, so stores are contiguous; where an operand is contiguous and not broadcast its
place is the number itself, and no integer is divided.

Where operands lie across the outputs, as in `x + y.T`, they would be read in long steps, a line of
memory for each element. So a program takes a rectangle of places: along one side its results lie
one behind the other, along the other side the operand that lies across. Each is read and stored in
lines of its own, and Triton exchanges elements between threads in between.

The programs of updates are dealt out to the outputs, one after another. The additions of a scatter
are atomic, so in which order they happen at one place is open, and sums of floats may differ in the
last bits from run to run.
"""

from __future__ import annotations

from typing import Final

from ..ir.dims import ONE, Dim
from ..ir.types import float32, float64, int32, int64
from ..kernels.calling import Layout, NoKernel
from ..kernels.groups import Group
from ..kernels.plans.code import Axis
from ..kernels.plans.pointwise import (
    ACROSS,
    ALONG,
    FLAT,
    OUTER,
    PlacesPlan,
    crossing_plan,
    pointwise_plan,
    rectangles_of,
    scatter_additions,
    scatter_start,
    updates_plan,
)
from .block import Block
from .emit import KernelText
from .kernel import Config, Kernel, Lowered, Parts, Tiles
from .rows.configs import fills

CONFIGS: Final = (
    Config((("BLOCK", 1024),), num_warps=4, num_stages=1),
    Config((("BLOCK", 2048),), num_warps=8, num_stages=1),
    Config((("BLOCK", 512),), num_warps=2, num_stages=1),
)
"""Eight float32 elements for each thread are two wide loads in flight; halves still fill one. An
H200 must have some 25 KB in flight on each processor (4.8 TB/s for about 0.7 us, by 132); 16 blocks
of 1024 float32, as many as fit on one, are 64 KB for each operand."""

_RECTANGLES: Final = (
    Config((("ROWS", 64), ("COLUMNS", 64)), num_warps=8, num_stages=1),
    Config((("ROWS", 32), ("COLUMNS", 32)), num_warps=4, num_stages=1),
    Config((("ROWS", 32), ("COLUMNS", 64)), num_warps=4, num_stages=1),
)
"""A side of 64 halves fills a line of memory; 16 elements for each thread are four wide accesses in
flight for float32, two for halves."""

_SINGLE: Final = Config((), num_warps=1, num_stages=1)
"""For a kernel whose one program computes one element."""

_ADDED: Final = frozenset((float32, float64, int32, int64))
"""The dtypes that every target adds atomically."""


def lower_pointwise(group: Group, layout: Layout) -> Lowered:
    """Return the kernel of a pointwise group."""
    rectangles = rectangles_of(group, layout)
    if rectangles is not None:
        return Lowered((_crossing(group, crossing_plan(group, layout, rectangles), layout),))
    kernel, block, plan = _begin(group, pointwise_plan(group, layout), layout)
    for store in plan.stores:
        block.store(store)
    return Lowered((_finish(kernel, block, plan),))


def _begin(
    group: Group, plan: PlacesPlan, layout: Layout, suffix: str = "", *, is_masked: bool = False
) -> tuple[KernelText, Block, PlacesPlan]:
    """Begin the code of a pass: which places a program takes. With `is_masked` blocks are masked
    even if they fill the places."""
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places, suffix)
    places = (n for s in plan.stores for n in kernel.terms.found(s.at))
    kernel.count([*plan.roots, *(kernel.terms.coordinates[n][0] for n in places)])
    kernel.take("i", "inside")
    count = plan.count
    is_full = fills(_configs(count), "BLOCK", count) and not is_masked
    inside = None if is_full else "inside"
    (flat,) = plan.index
    axes = [Axis(FLAT, "i", inside)] if flat.terms else []
    block = Block(kernel, axes, ["BLOCK"])
    if axes:
        number = "tl.program_id(0).to(tl.int64)" if layout.is_wide else "tl.program_id(0)"
        block.line(f"i = {number} * {kernel.constant('BLOCK')} + tl.arange(0, BLOCK)")
        if inside is not None:
            block.line(f"{inside} = i < {kernel.dims.size(count)}")
    return kernel, block, plan


def _finish(kernel: KernelText, block: Block, plan: PlacesPlan) -> Kernel:
    """Return the kernel of a pass whose code is complete."""
    (flat,) = plan.index
    tiles = Tiles(plan.count, "BLOCK" if flat.terms else None)
    configs = _configs(plan.count) if flat.terms else (_SINGLE,)
    return kernel.finish(block.lines, ((tiles,),), configs)


def _configs(count: Dim) -> tuple[Config, ...]:
    """Return configurations for so many places; only those whose blocks fill them, if any do, so
    that nothing has to be masked."""
    return tuple(c for c in CONFIGS if fills((c,), "BLOCK", count)) or CONFIGS


def _crossing(group: Group, plan: PlacesPlan, layout: Layout) -> Kernel:
    """Return the kernel of a pass over rectangles of places."""
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places)
    kernel.take("tile", "tiles", "rows", "outer", "row", "column", "row_inside", "column_inside")
    kernel.count(plan.roots)
    outer, across, along = plan.sizes
    filling = (c for c in _RECTANGLES if fills((c,), "ROWS", across))
    configs = tuple(c for c in filling if fills((c,), "COLUMNS", along)) or _RECTANGLES
    row_inside = None if fills(configs, "ROWS", across) else "row_inside"
    column_inside = None if fills(configs, "COLUMNS", along) else "column_inside"
    axes = [
        *([] if outer == ONE else [Axis(OUTER, "outer", None, is_one=True)]),
        Axis(ACROSS, "row", row_inside),
        Axis(ALONG, "column", column_inside),
    ]
    block = Block(kernel, axes, [kernel.constant("ROWS"), kernel.constant("COLUMNS")])
    height, width = kernel.dims.size(across), kernel.dims.size(along)
    block.line("tile = tl.program_id(0)" + (".to(tl.int64)" if layout.is_wide else ""))
    block.line(f"tiles = tl.cdiv({width}, COLUMNS)")
    row = "tile // tiles"
    if outer != ONE:
        block.line(f"rows = tl.cdiv({height}, ROWS)")
        block.line("outer = tile // (tiles * rows)")
        row = "tile // tiles % rows"
    block.line(f"row = ({row} * ROWS + tl.arange(0, ROWS))[:, None]")
    block.line("column = (tile % tiles * COLUMNS + tl.arange(0, COLUMNS))[None, :]")
    if row_inside is not None:
        block.line(f"{row_inside} = row < {height}")
    if column_inside is not None:
        block.line(f"{column_inside} = column < {width}")
    for store in plan.stores:
        block.store(store)
    tiles = (Tiles(along, "COLUMNS"), Tiles(across, "ROWS"), Tiles(outer, None))
    return kernel.finish(block.lines, (tiles,), configs)


def lower_updates(group: Group, layout: Layout) -> Lowered:
    """Return the kernel of a group whose outputs have different numbers of elements."""
    plan = updates_plan(group, layout)
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places)
    kernel.take("program", "begin", "inside", *(name for name, _, _ in plan.passes))
    kernel.count([store.term for _, _, store in plan.passes])
    kernel.constant("BLOCK")
    block = Block(kernel, [], [])
    wide = ".to(tl.int64)" if layout.is_wide else ""
    block.line(f"program = tl.program_id(0){wide}")
    parts: list[str] = []
    for number, (name, count, store) in enumerate(plan.passes):
        size = kernel.dims.size(count)
        part = Block(kernel, [Axis(name, name, "inside")], ["BLOCK"], block, name)
        for load in plan.read_again(store):
            part.keep(load)  # other programs must not read what this one stores
        part.line(f"{name} = (program - begin) * BLOCK + tl.arange(0, BLOCK)")
        part.line(f"inside = {name} < {size}")
        part.store(store)
        begin = "begin = 0" if number == 0 else "begin = end"
        parts += [begin, f"end = begin + tl.cdiv({size}, BLOCK)"]
        parts += ["if (program >= begin) & (program < end):", *(f"    {p}" for p in part.lines)]
    for line in parts:
        block.line(line)
    grid = ((Parts(tuple(Tiles(count, "BLOCK") for _, count, _ in plan.passes)),),)
    return Lowered((kernel.finish(block.lines, grid, CONFIGS),))


def lower_scatter(group: Group, layout: Layout) -> Lowered:
    """Return the kernels of a scatter: the result as it starts, then additions at places that are
    computed. Raises NoKernel."""
    added = scatter_additions(group, layout)
    (store,) = added.stores
    assert group.scattered is not None
    adds = group.scattered.lowering.adds
    if adds and store.target.dtype not in _ADDED:
        raise NoKernel(f"{store.target.dtype} is not added atomically")
    # The mask is a block where place and value are one for all, and are added for each.
    kernel, block, _ = _begin(group, added, layout, is_masked=True)
    block.scatter(store, adds=adds)
    kernels = (_finish(kernel, block, added),)
    start = scatter_start(group, layout)
    if start is not None:
        first, copied, _ = _begin(group, start, layout, "_start")
        copied.store(start.stores[0])
        kernels = (_finish(first, copied, start), *kernels)
    return Lowered(kernels)
