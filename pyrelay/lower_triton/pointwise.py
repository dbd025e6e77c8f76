"""Kernels of one pass: every output has an element for each place of one row of places.

The places of the first output are numbered row by row, and each program takes a block of them.
Outputs are stored in that order, so stores are contiguous; where an operand is contiguous and not
broadcast its place is the number itself, and no integer is divided. Where operands lie across the
outputs, programs take rectangles of places (`crossing`).
"""

from __future__ import annotations

from typing import Final

from ..ir.dims import Dim, product
from ..ir.expr import type_of
from ..kernels.groups import Group
from ..kernels.reading import shape_of
from .block import Block
from .crossing import cut_of, lower_crossing
from .emit import KernelText
from .indexing import Axis
from .kernel import Config, Kernel, Layout, Lowered, Tiles
from .rows.configs import fills
from .supplier import TermSupplier

CONFIGS: Final = (
    Config((("BLOCK", 1024),), num_warps=4, num_stages=1),
    Config((("BLOCK", 2048),), num_warps=8, num_stages=1),
    Config((("BLOCK", 512),), num_warps=2, num_stages=1),
)
"""Eight float32 elements for each thread are two wide loads in flight; halves still fill one. An
H200 must have some 25 KB in flight on each processor (4.8 TB/s for about 0.7 us, by 132); 16 blocks
of 1024 float32, as many as fit on one, are 64 KB for each operand."""

FLAT: Final = "%i"
"""The coordinate of a pass over places; no size has such a name."""


def lower_pointwise(group: Group, layout: Layout) -> Lowered:
    """Return the kernel of a group that is one pass over places."""
    cut = cut_of(group, layout)
    if cut is not None:
        return Lowered((lower_crossing(group, layout, cut),))
    supplier = TermSupplier(group.function, layout, {})
    places = supplier.places
    count = product(group.shape)
    flat = places.coordinate(FLAT, count)
    stored = [
        (o, places.relocated((flat,), (count,), shape_of(type_of(o.value)))) for o in group.outputs
    ]
    terms = [supplier.element(o.value, index) for o, index in stored]
    kernel = KernelText(group.function, supplier.terms, places)
    kernel.count(terms)
    block = begin(kernel, flat, count, layout)
    for (output, index), term in zip(stored, terms, strict=True):
        pointer, at = supplier.target(kernel, output, index)
        block.store(pointer, at, term)
    return Lowered((finish(kernel, block, flat, count),))


def begin(
    kernel: KernelText, flat: Dim, count: Dim, layout: Layout, *, is_masked: bool = False
) -> Block:
    """Begin the code of a pass over `count` places, whose coordinate is `flat`: which of them a
    program takes. With `is_masked` blocks are masked even if they fill the places."""
    kernel.take("i", "inside")
    is_full = fills(configs_of(count), "BLOCK", count) and not is_masked
    inside = None if is_full else "inside"
    axes = [Axis(FLAT, "i", inside)] if flat.terms else []
    block = Block(kernel, axes, ["BLOCK"])
    if axes:
        number = "tl.program_id(0).to(tl.int64)" if layout.is_wide else "tl.program_id(0)"
        block.line(f"i = {number} * {kernel.constant('BLOCK')} + tl.arange(0, BLOCK)")
        if axes[0].inside is not None:
            block.line(f"{axes[0].inside} = i < {kernel.dims.size(count)}")
    return block


def finish(kernel: KernelText, block: Block, flat: Dim, count: Dim) -> Kernel:
    """Return the kernel of a pass whose code is complete."""
    tiles = Tiles(count, "BLOCK" if flat.terms else None)
    configs = configs_of(count) if flat.terms else (SINGLE,)
    return kernel.finish(block.lines, ((tiles,),), configs)


def configs_of(count: Dim) -> tuple[Config, ...]:
    """Return configurations for so many places; only those whose blocks fill them, if any do, so
    that nothing has to be masked."""
    return tuple(c for c in CONFIGS if fills((c,), "BLOCK", count)) or CONFIGS


SINGLE: Final = Config((), num_warps=1, num_stages=1)
"""For a kernel whose one program computes one element."""
