"""Kernels of a pass with reductions: each program takes some rows of a domain, or part of them.

The kept dims of the domain are numbered by one coordinate, the reduced ones by another. A row that
fits into a block is read once and stays in registers (`one_block`). A longer one is gone through
once for each *stage*: reductions that need no other's result are made in the first loop, those that
need only these in the second, and so on; what is stored for each place is stored in the first loop
that can, or in a last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from ..ir.dims import ONE, Dim, product
from ..ir.expr import Var, type_of
from ..ir.types import int64
from ..passes.regions.groups import Domain, Group, Output, Reduced
from ..passes.regions.places import linear
from ..passes.regions.reading import shape_of
from .block import Block
from .emit import KernelText
from .indexing import Axis
from .kernel import Config, Kernel, Layout, Lowered, NoKernel, Tiles
from .reductions import Reduction, Row, combining_dtype, first_of
from .row_configs import longest_block, loop_configs, one_block_configs
from .supplier import TermSupplier
from .terms import Term

KEPT: Final = "%row"
REDUCED: Final = "%along"
"""The coordinates; no size has such a name."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """An output: its term, where it is stored in what, whether it has an element for each place of
    the domain, and after how many stages it is known."""

    output: Output
    index: tuple[Dim, ...]
    term: Term
    is_whole: bool
    stage: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a pass computes, as terms: the reductions of each stage, and what is stored."""

    supplier: TermSupplier
    kept: Dim
    reduced: Dim
    is_column: bool
    stages: tuple[tuple[Reduction, ...], ...]
    stored: tuple[Stored, ...]

    @property
    def roots(self) -> list[Term]:
        """The terms that are asked for."""
        operands = [r.operand for stage in self.stages for r in stage]
        return [*operands, *(s.term for s in self.stored)]


def lower_rows(group: Group, layout: Layout) -> Lowered:
    """Give the kernels of a group that is a pass with reductions. Raises NoKernel where one row
    needs what a reduction gives for another."""
    plan = plan_of(group, layout)
    whole = longest_block(plan.is_column)
    size = plan.reduced.constant
    if size is not None and size > whole:
        return Lowered((_looped(group, plan, layout),))
    if size is not None:
        return Lowered((_one_block(group, plan, layout, size),))
    chosen = Lowered((_looped(group, plan, layout),))
    block = whole
    while block >= SMALLEST:
        kernel = _one_block(group, plan, layout, block)
        chosen = Lowered((kernel,), limits=((plan.reduced, block),), otherwise=chosen)
        block //= 2
    return chosen


SMALLEST: Final = 16
"""Blocks of fewer elements of a row are not made for rows of unknown length."""


def plan_of(group: Group, layout: Layout) -> Plan:
    """Give what a pass computes, as terms."""
    domain = group.domain
    assert domain is not None
    reader = _RowReader(group, layout, domain)
    return reader.plan()


@final
class _RowReader:
    """Reads a pass: its reductions are leaves, whose operands are read in turn."""

    def __init__(self, group: Group, layout: Layout, domain: Domain) -> None:
        self._group: Final = group
        self._domain: Final = domain
        leaves = {r.var: self._result for r in group.reductions}
        self._supplier: Final = TermSupplier(group.function, layout, leaves)
        places = self._supplier.places
        self._reduced_shape: Final = tuple(domain.shape[i] for i in domain.reduced)
        self._kept_size: Final = product(domain.kept)
        self._reduced_size: Final = product(self._reduced_shape)
        self._row: Final = places.coordinate(KEPT, self._kept_size)
        self._along: Final = places.coordinate(REDUCED, self._reduced_size)
        self._index: Final = self._domain_index()
        self._made: Final[dict[Var, Reduction]] = {}
        self._stages: Final[dict[Term, int]] = {}

    def plan(self) -> Plan:
        """Give the pass."""
        for reduced in self._group.reductions:
            self._made[reduced.var] = self._reduction(reduced)
        stored = tuple(self._store(o) for o in self._group.outputs)
        count = 1 + max((self._stage_of(r) for r in self._made.values()), default=-1)
        stages = tuple(
            tuple(r for r in self._made.values() if self._stage_of(r) == s) for s in range(count)
        )
        merged = self._domain.merged
        is_column = bool(merged) and not merged[-1][1]
        return Plan(self._supplier, self._kept_size, self._reduced_size, is_column, stages, stored)

    def _domain_index(self) -> tuple[Dim, ...]:
        """Give the place in the domain for coordinates of a kept and a reduced row of places."""
        places = self._supplier.places
        kept = iter(places.relocated((self._row,), (self._kept_size,), self._domain.kept))
        reduced = iter(places.relocated((self._along,), (self._reduced_size,), self._reduced_shape))
        axes = range(len(self._domain.shape))
        return tuple(next(reduced if i in self._domain.reduced else kept) for i in axes)

    def _place(self, shape: Sequence[Dim], *, is_whole: bool) -> tuple[Dim, ...]:
        places = self._supplier.places
        if is_whole:
            return places.relocated(self._index, self._domain.shape, shape)
        return places.relocated((self._row,), (self._kept_size,), shape)

    def _reduction(self, reduced: Reduced) -> Reduction:
        shape = shape_of(type_of(reduced.operand))
        operand = self._supplier.element(reduced.operand, self._place(shape, is_whole=True))
        dtype = combining_dtype(reduced)
        operand = self._supplier.elements(dtype, ()).cast(operand, dtype)
        number = len(self._made)
        make = self._supplier.terms.make
        is_position = reduced.combine in ("argmax", "argmin")
        value = None if is_position else make("result", dtype=dtype, detail=(number, 0))
        has_position = is_position or reduced.with_positions
        position = make("result", dtype=int64, detail=(number, 1)) if has_position else None
        found = Reduction(reduced, operand, value, position)
        for term in found.results:
            self._stages[term] = self._stage(operand) + 1
        return found

    def _result(self, var: Var, index: tuple[Dim, ...]) -> Term | tuple[Term, ...]:
        """Give what a reduction gives for the row at hand, the only one that may be asked for."""
        reduction = self._made[var]
        ty = type_of(reduction.reduced.call)
        first = first_of(ty)
        at = self._supplier.places.simplified(linear(index, shape_of(first)))
        if at != self._row:
            raise NoKernel(f"`{var.name}` is needed of another row than the one at hand")
        first, *others = reduction.results
        return (first, *others) if others else first

    def _store(self, output: Output) -> Stored:
        shape = shape_of(type_of(output.value))
        is_whole = product(shape) != self._kept_size
        index = self._place(shape, is_whole=is_whole)
        term = self._supplier.element(output.value, index)
        return Stored(output, index, term, is_whole, self._stage(term))

    def _stage_of(self, reduction: Reduction) -> int:
        return self._stages[reduction.results[0]] - 1

    def _stage(self, term: Term) -> int:
        """Give after how many stages a term is known."""
        pending = [term]
        while pending:
            current = pending[-1]
            before = self._supplier.terms.before(current)
            missing = [t for t in before if t not in self._stages]
            if missing:
                pending += missing
                continue
            pending.pop()
            known = max((self._stages[t] for t in before), default=0)
            self._stages.setdefault(current, known)
        return self._stages[term]


@final
class _Rows:
    """The text of one kernel of a pass: its axes, and the code around the rows."""

    def __init__(self, group: Group, plan: Plan, layout: Layout) -> None:
        self.plan: Final = plan
        self._layout: Final = layout
        self.kernel: Final = KernelText(group.function, plan.supplier.terms, plan.supplier.places)
        self.kernel.take("row", "along", "row_inside", "along_inside", "start")
        self.kernel.count(plan.roots)
        self.is_alone: Final = plan.kept == ONE
        kept = [] if self.is_alone else [Axis(KEPT, "row", "row_inside")]
        self.axes: Final = [*kept, Axis(REDUCED, "along", "along_inside")]
        if not self.is_alone:
            self.kernel.constant("ROWS")
        self.kernel.constant("ALONG")
        self.shape: Final = ["ALONG"] if self.is_alone else ["ROWS", "ALONG"]
        self.count: Final = self.kernel.dims.size(plan.reduced)
        self.outer: Final = Block(self.kernel, self.axes, self.shape)
        rows = [] if self.is_alone else [KEPT]
        for reduction in (r for stage in plan.stages for r in stage):
            for term in reduction.results:
                self.outer.set_axes(term, rows)
        self.row: Final = Row(self.outer, "along", self.count, is_alone=self.is_alone)

    def begin(self) -> None:
        """Write which rows the program takes."""
        if self.is_alone:
            return
        number = "tl.program_id(0).to(tl.int64)" if self._layout.is_wide else "tl.program_id(0)"
        self.outer.line(f"row = ({number} * ROWS + tl.arange(0, ROWS))[:, None]")
        self.outer.line(f"row_inside = row < {self.kernel.dims.size(self.plan.kept)}")

    def places(self, start: str | None) -> str:
        """Give the text of the places of a block in a row."""
        along = "tl.arange(0, ALONG)" + ("" if self.is_alone else "[None, :]")
        whole = along if start is None else f"{start} + {along}"
        if not self._layout.is_wide:
            return whole
        return f"{along}.to(tl.int64)" if start is None else f"({whole}).to(tl.int64)"

    def store(self, block: Block, stored: Stored) -> None:
        """Write how an output is stored."""
        pointer, at = self.plan.supplier.target(self.kernel, stored.output, stored.index)
        block.store(pointer, at, stored.term)

    def finish(self, configs: tuple[Config, ...]) -> Kernel:
        """Give the kernel."""
        tiles = Tiles(ONE, None) if self.is_alone else Tiles(self.plan.kept, "ROWS")
        return self.kernel.finish(self.outer.lines, ((tiles,),), configs)


def _one_block(group: Group, plan: Plan, layout: Layout, longest: int) -> Kernel:
    """Give the kernel for rows of at most so many elements: each is one block."""
    rows = _Rows(group, plan, layout)
    rows.begin()
    rows.outer.line(f"along = {rows.places(None)}")
    rows.outer.line(f"along_inside = along < {rows.count}")
    for stage in plan.stages:
        for reduction in stage:
            rows.row.whole(reduction, "along_inside")
    for stored in plan.stored:
        rows.store(rows.outer, stored)
    return rows.finish(one_block_configs(plan.kept, longest, is_column=plan.is_column))


def _looped(group: Group, plan: Plan, layout: Layout) -> Kernel:
    """Give the kernel for rows of any length: a loop over blocks for each stage."""
    rows = _Rows(group, plan, layout)
    rows.begin()
    last = max((s.stage for s in plan.stored if s.is_whole), default=-1)
    for stage in range(max(len(plan.stages), last + 1)):
        reductions = plan.stages[stage] if stage < len(plan.stages) else ()
        stored = [s for s in plan.stored if s.is_whole and s.stage == stage]
        _stage_loop(rows, reductions, stored)
    for stored in plan.stored:
        if not stored.is_whole:
            rows.store(rows.outer, stored)
    return rows.finish(loop_configs(plan.kept, is_column=plan.is_column))


def _stage_loop(rows: _Rows, reductions: Sequence[Reduction], stored: Sequence[Stored]) -> None:
    names = [rows.row.start(r) for r in reductions]
    loop = Block(rows.kernel, rows.axes, rows.shape, rows.outer, REDUCED)
    loop.line(f"along = {rows.places('start')}")
    loop.line(f"along_inside = along < {rows.count}")
    for reduction, accumulator in zip(reductions, names, strict=True):
        rows.row.step(loop, reduction, accumulator, "along_inside")
    for output in stored:
        rows.store(loop, output)
    rows.outer.line(f"for start in range(0, {rows.count}, ALONG):")
    rows.outer.lines.extend(f"    {line}" for line in loop.lines)
    for reduction, accumulator in zip(reductions, names, strict=True):
        rows.row.finish(reduction, accumulator)
