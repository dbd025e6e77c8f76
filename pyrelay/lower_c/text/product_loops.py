"""The loops around sums of products: their coordinates, their sizes, and their scratch."""

from __future__ import annotations

from typing import Final, final

from ...ir.dims import ONE, ZERO, Dim
from ...ir.types import DType
from ...kernels.calling import Layout, Scratch
from ...kernels.places import linear
from ...kernels.plans.code import Axis
from ...kernels.plans.contraction import ContractionPlan
from ...kernels.plans.text import Text
from ..kernel import OWN
from .block import Block
from .emit import KernelText


@final
class ProductLoops:
    """The loops of one kernel, over a batch, rows and columns, and along what is summed."""

    def __init__(self, code: KernelText, plan: ContractionPlan, layout: Layout) -> None:
        self.code: Final = code
        self.plan: Final = plan
        self.sorts: Final = plan.sorts.turned() if plan.is_turned else plan.sorts
        self.own: Final = ("n", "m") if plan.is_turned else ("m", "n")
        """The coordinates of rows and of columns."""
        self.dtype: Final = plan.accumulated
        dtypes = [plan.accumulated, *(s.target.dtype for s, _ in plan.stores)]
        dtypes += [r.dtype for r in plan.beside]
        code.choose_lanes(plan.roots, dtypes, self.own[1], layout)
        code.count(plan.roots)
        self.batch: Final = code.fresh("b")
        self.row: Final = code.fresh("i")
        self.column: Final = code.fresh("j")
        self.along: Final = {c: code.fresh("k") for c in plan.loops.values()}
        self.axes: Final = self.axes_at(self.column)
        self.scratch = 0
        """How many scratch arguments there are."""

    def axes_at(self, column: str) -> list[Axis]:
        """Return the axes of all coordinates, where a column is named so."""
        own = zip(self.own, (self.row, column), strict=True)
        return [Axis(c, t, None) for c, t in (("batch", self.batch), *own, *self.along.items())]

    @property
    def shape(self) -> tuple[Dim, Dim, Dim]:
        """The sizes of the batch, the rows and the columns."""
        return self.sorts.batch.count, self.sorts.rows.count, self.sorts.columns.count

    def size(self, dim: Dim) -> Text:
        """Return the text of a size."""
        return self.code.dims.size(dim)

    def inner(self, dim: Dim) -> str:
        """Return the text of a size inside a product."""
        return self.size(dim).inside(7)

    def count(self, along: str) -> Dim:
        """Return the size of what is summed along a coordinate."""
        return next(c for c, name in self.plan.loops.items() if name == along)

    def packed_room(self, shape: tuple[Dim, ...], wish: str) -> str:
        """Return the name of new scratch for operands or sums that a library does without."""
        return self.room(shape, wish, way=None if self.code.route is None else OWN)

    def room(
        self,
        shape: tuple[Dim, ...],
        wish: str,
        dtype: DType | None = None,
        way: int | None = None,
    ) -> str:
        """Return the name of new scratch; `way` is the only one that needs it."""
        scratch = Scratch(self.scratch, dtype or self.dtype, shape, way=way)
        self.scratch += 1
        return self.code.argument(scratch, wish)

    def place_of_sum(self) -> Dim:
        """Return where a sum lies among all, row by row."""
        names = ("batch", *self.own)
        index = [ZERO if n == ONE else Dim.of(c) for c, n in zip(names, self.shape, strict=True)]
        return linear(index, self.shape)

    def blocks(self, lane: str, loop: str, other: str) -> tuple[Block, Block, Block, Block]:
        """Return nested blocks: around all loops, in that over the batch, in that over lanes, and
        in the one inside."""
        outer = Block(self.code, self.axes, None)
        first = Block(self.code, self.axes, None, outer, "batch")
        inner = Block(self.code, self.axes, lane, first, loop)
        return outer, first, inner, Block(self.code, self.axes, lane, inner, other)


def loop(name: str, count: Text) -> str:
    """Return the head of a loop over all places of a coordinate."""
    return f"for (int64_t {name} = 0; {name} < {count}; {name}++) {{"


def tile_loop(batch: str, rows: Text, columns: Text, size: tuple[str, str]) -> list[str]:
    """Return the lines that begin the loop over tiles, up to the place and the size of one. `most`
    rows of tiles meet a panel before the next."""
    high, wide = size
    return [
        f"const int64_t tiles_m = ({rows} + {high} - 1) / {high};",
        f"const int64_t tiles_n = ({columns} + {wide} - 1) / {wide};",
        "relay_tile tile = relay_tile_at(begin, tiles_m, tiles_n, most);",
        "for (int64_t left = end - begin; left > 0; left--, relay_next_tile(&tile)) {",
        f"    const int64_t {batch} = tile.batch, panel = tile.column;",
        f"    const int64_t first = tile.row * {high}, column = panel * {wide};",
        f"    const int64_t rows = relay_least_i64({rows} - first, {high});",
        f"    const int64_t columns = relay_least_i64({columns} - column, {wide});",
    ]
