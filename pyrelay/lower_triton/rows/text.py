"""The text of one kernel of a pass with reductions: its axes, its loops, and what it stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from ...ir.dims import ONE, Dim
from ...kernels.calling import Layout
from ...kernels.groups import Group
from ...kernels.plans.code import Axis
from ...kernels.plans.reductions import Reduction
from ...kernels.plans.rows import KEPT, REDUCED, RowPlan, Stored
from ...kernels.plans.terms import Term
from ...kernels.plans.text import Text
from ..block import Block
from ..emit import KernelText
from ..kernel import Config, Kernel, Tiles
from .combining import Row
from .configs import ALONG, ROWS, fills


@final
class RowText:
    """One kernel of a pass in the making; `outer` is the code for its rows."""

    def __init__(
        self,
        group: Group,
        plan: RowPlan,
        layout: Layout,
        configs: tuple[Config, ...],
        suffix: str = "",
        roots: Iterable[Term] | None = None,
        *,
        is_looped: bool = True,
    ) -> None:
        """`roots` are the terms that it is asked for; all of the plan if they are not given. A row
        that is not looped over is one block."""
        self.plan: Final = plan
        self._configs: Final = configs
        self._layout: Final = layout
        terms, places = plan.supplier.terms, plan.supplier.places
        self.kernel: Final = KernelText(group.function, terms, places, suffix)
        self.kernel.take("row", "along", "row_inside", "along_inside", "start")
        self.kernel.take("piece", "pieces", "has_piece", "first", "last")
        self.kernel.count(plan.roots if roots is None else roots)
        self.is_alone: Final = plan.kept == ONE
        self.has_rows: Final = any(name == ROWS for name, _ in configs[0].constants)
        row_inside = None if fills(configs, ROWS, plan.kept) else "row_inside"
        self.row_inside: Final = row_inside if self.has_rows else None
        # A row that is one block may have no elements, which are a multiple of every size.
        is_full = fills(configs, ALONG, plan.reduced) and (
            is_looped or plan.reduced in [Dim.of(dict(c.constants).get(ALONG, 0)) for c in configs]
        )
        self.along_inside: Final = None if is_full else "along_inside"
        row = Axis(KEPT, "row", self.row_inside, is_one=not self.has_rows)
        axes = [*([] if self.is_alone else [row]), Axis(REDUCED, "along", self.along_inside)]
        shape = [ROWS, ALONG] if self.has_rows else [ALONG]
        if self.has_rows:
            self.kernel.constant(ROWS)
        self.count: Final = self.kernel.dims.size(plan.reduced)
        self.outer: Final = Block(self.kernel, axes, shape)
        self._axes: Final = axes
        for reduction in (r for stage in plan.stages for r in stage):
            for term in reduction.results:
                self.outer.set_axes(term, [KEPT] if self.has_rows else [])
        self.row: Final = Row(self.outer, "along", self.count)

    def begin(self) -> None:
        """Write which rows the program takes."""
        if self.is_alone:
            return
        if not self.has_rows:
            self.outer.line(f"row = {self.program(0)}")
            return
        self.outer.line(f"row = ({self.program(0)} * ROWS + tl.arange(0, ROWS))[:, None]")
        if self.row_inside is not None:
            self.outer.line(f"{self.row_inside} = row < {self.kernel.dims.size(self.plan.kept)}")

    def program(self, axis: int) -> str:
        """Return the text of the program's number along an axis of the grid."""
        text = f"tl.program_id({axis})"
        return f"{text}.to(tl.int64)" if self._layout.is_wide else text

    def places(self, start: str | None) -> str:
        """Return the text of the places of a block in a row."""
        along = self.across(self.kernel.constant(ALONG))
        whole = along if start is None else f"{start} + {along}"
        if not self._layout.is_wide:
            return whole
        return f"{along}.to(tl.int64)" if start is None else f"({whole}).to(tl.int64)"

    def across(self, count: str) -> str:
        """Return the text of numbers from 0 along a row."""
        return f"tl.arange(0, {count})" + ("[None, :]" if self.has_rows else "")

    def loop(
        self,
        reductions: Sequence[Reduction],
        stored: Sequence[Stored],
        first: str = "0",
        last: str | None = None,
    ) -> None:
        """Write a loop over the blocks of a row, or of the part from `first` to `last`, that
        combines and stores. Nothing is written if there is nothing to do."""
        if not reductions and not stored:
            return
        self.row.start(reductions)
        stop = str(self.count) if last is None else last
        loop = Block(self.kernel, self._axes, self.outer.shape, self.outer, REDUCED)
        loop.line(f"along = {self.places('start')}")
        if self.along_inside is not None:
            loop.line(f"{self.along_inside} = along < {stop}")
        self.row.step(loop, reductions, self.along_inside, f"start == {first}")
        for output in stored:
            self.store(loop, output)
        self.outer.line(f"for start in range({first}, {stop}, ALONG):")
        self.outer.lines.extend(f"    {line}" for line in loop.lines)

    def taken(self, count: Text) -> str:
        """Return how many of `count` elements each place of an accumulator has taken up."""
        if self.along_inside is None:
            return f"{count.inside(6)} // ALONG"
        return f"({count} + ALONG - 1 - {self.across(ALONG)}) // ALONG"

    def store(self, block: Block, stored: Stored, also: str | None = None) -> None:
        """Write how an output is stored; `also` must hold, too."""
        block.store(stored.store, also)

    @property
    def row_tiles(self) -> Tiles:
        """The blocks of rows."""
        return Tiles(self.plan.kept, ROWS if self.has_rows else None)

    def finish(self, *more: tuple[Tiles, ...]) -> Kernel:
        """Return the kernel; `more` are further axes of its grid."""
        return self.kernel.finish(self.outer.lines, ((self.row_tiles,), *more), self._configs)
