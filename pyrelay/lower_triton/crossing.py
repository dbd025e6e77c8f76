"""Kernels of one pass over places, some of whose operands lie across the others, as in `x + y.T`.

In the order of the result such an operand is read in long steps, a line of memory for each element.
So a program takes a rectangle of places: along one side its results lie one behind the other, along
the other side the operand that lies across. Each is read and stored in lines of its own, and Triton
exchanges elements between threads in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from ..ir.dims import ONE, Dim, DimOp, product
from ..ir.expr import type_of
from ..kernels.groups import Group, Output
from ..kernels.reading import shape_of
from .block import Block
from .emit import KernelText
from .indexing import Axis, steps_of
from .kernel import Config, Kernel, Layout, Tiles
from .rows.configs import fills
from .supplier import TermSupplier
from .terms import Access, Term

_CONFIGS: Final = (
    Config((("ROWS", 64), ("COLUMNS", 64)), num_warps=8, num_stages=1),
    Config((("ROWS", 32), ("COLUMNS", 32)), num_warps=4, num_stages=1),
    Config((("ROWS", 32), ("COLUMNS", 64)), num_warps=4, num_stages=1),
)
"""A side of 64 halves fills a line of memory; 16 elements for each thread are four wide accesses in
flight for float32, two for halves."""

_LEAST: Final = 8
"""Sides of fewer float32 fill no 32 bytes, the least that is read from memory."""

_OUTER: Final = "%outer"
_ACROSS: Final = "%across"
_ALONG: Final = "%along"

Cut: TypeAlias = tuple[Dim, Dim, Dim]
"""The places of a result, row by row, as a product: how many rectangles lie behind each other, how
many places there are along the operands across, and along the results."""


@final
@dataclass(frozen=True, slots=True)
class _Reading:
    """A pass over places, read with certain coordinates."""

    supplier: TermSupplier
    stored: tuple[tuple[Output, tuple[Dim, ...]], ...]
    terms: tuple[Term, ...]

    @property
    def offsets(self) -> list[Dim]:
        """Where in operands it reads."""
        needed = self.supplier.terms.needed(self.terms)
        return [t.detail.offset for t in needed if isinstance(t.detail, Access)]


def cut_of(group: Group, layout: Layout) -> Cut | None:
    """Return the rectangles of a pass over places, if operands lie across its results: as long as
    the operand lies in one piece."""
    shape = tuple(d for d in group.shape if d != ONE)
    names = [f"%{axis}" for axis in range(len(shape))]
    across = _axis_across(_reading(group, layout, names, shape), names)
    if across is None:
        return None
    behind = product(shape[across + 1 :])
    for first in range(across + 1):
        cut = product(shape[:first]), product(shape[first : across + 1]), behind
        if first == across or not _is_taken_apart(group, layout, cut):
            return None if any(d.constant in range(_LEAST) for d in cut[1:]) else cut
    return None


def _reading(group: Group, layout: Layout, names: Sequence[str], sizes: Sequence[Dim]) -> _Reading:
    supplier = TermSupplier(group.function, layout, {})
    places = supplier.places
    index = tuple(places.coordinate(n, s) for n, s in zip(names, sizes, strict=True))
    stored = tuple(
        (o, places.relocated(index, sizes, shape_of(type_of(o.value)))) for o in group.outputs
    )
    terms = tuple(supplier.element(o.value, at) for o, at in stored)
    return _Reading(supplier, stored, terms)


def _axis_across(reading: _Reading, names: Sequence[str]) -> int | None:
    """Return the dim, not the last, that the elements of most operands lie along which do not lie
    along the last; its coordinates have these names."""
    found: Counter[int] = Counter()
    for offset in reading.offsets:
        steps = {names.index(n): step for n, step in steps_of(offset) if n in names}
        axes = [axis for axis, step in steps.items() if step == ONE]
        last = len(names) - 1
        if last in steps and axes and last not in axes:
            found[axes[0]] += 1
    return max(found, key=lambda axis: (found[axis], axis), default=None)


def _is_taken_apart(group: Group, layout: Layout, cut: Cut) -> bool:
    """Return whether an operand is read at quotients or remainders of the places across."""
    offsets = _reading(group, layout, (_OUTER, _ACROSS, _ALONG), cut).offsets
    atoms = [a for o in offsets for monomial, _ in o.terms for a in monomial]
    return any(isinstance(a, DimOp) and _ACROSS in Dim.atom(a).names() for a in atoms)


def lower_crossing(group: Group, layout: Layout, cut: Cut) -> Kernel:
    """Return the kernel of a pass over places whose rectangles are `cut`."""
    outer, across, along = cut
    reading = _reading(group, layout, (_OUTER, _ACROSS, _ALONG), cut)
    kernel = KernelText(group.function, reading.supplier.terms, reading.supplier.places)
    kernel.take("tile", "tiles", "rows", "outer", "row", "column", "row_inside", "column_inside")
    kernel.count(reading.terms)
    configs = _configs(across, along)
    block = _begin(kernel, layout, cut, configs)
    for (output, index), term in zip(reading.stored, reading.terms, strict=True):
        pointer, at = reading.supplier.target(kernel, output, index)
        block.store(pointer, at, term)
    tiles = (Tiles(along, "COLUMNS"), Tiles(across, "ROWS"), Tiles(outer, None))
    return kernel.finish(block.lines, (tiles,), configs)


def _begin(kernel: KernelText, layout: Layout, cut: Cut, configs: tuple[Config, ...]) -> Block:
    """Begin the code: which rectangle a program takes."""
    outer, across, along = cut
    row_inside = None if fills(configs, "ROWS", across) else "row_inside"
    column_inside = None if fills(configs, "COLUMNS", along) else "column_inside"
    axes = [
        *([] if outer == ONE else [Axis(_OUTER, "outer", None, is_one=True)]),
        Axis(_ACROSS, "row", row_inside),
        Axis(_ALONG, "column", column_inside),
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
    return block


def _configs(across: Dim, along: Dim) -> tuple[Config, ...]:
    """Return configurations; only those whose blocks fill both sides, if any do."""
    filling = [c for c in _CONFIGS if fills((c,), "ROWS", across) and fills((c,), "COLUMNS", along)]
    return tuple(filling) or _CONFIGS
