"""Passes with reductions: rows whose elements combine.

Where what is read lies along the reduced dims, the lanes of a vector are places along them, and a
row ends with its lanes combined. Where it lies along the kept dims, as in the sum of the columns of
a matrix, each lane is a row of its own.

One row that is as long as a tensor is divided into pieces, which threads reduce beside each other;
what they find is stored and combined at the end. The pieces are the same for any number of threads.

A row is gone through once for each stage, and once more for reductions that other backends make
online (`kernels.plans.reductions`): it is in the cache by then, and the sums are exact differences
from means and maxima. Functions that a later loop needs again are kept (`rereading`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ...ir.dims import ONE, Dim, product
from ...ir.types import bool_, int64, is_float
from ...kernels.calling import Layout, Scratch
from ...kernels.groups import Group
from ...kernels.places import linear, steps_of
from ...kernels.plans.code import Axis
from ...kernels.plans.reductions import Reduction, identity
from ...kernels.plans.rows import Coordinates, RowPlan, row_plan
from ...kernels.plans.terms import Access, Term
from ...kernels.plans.text import Text, call, infix
from ..kernel import Kernel
from ..math import Target, element_of
from .block import Block
from .combining import combined, folded
from .cost import cost_along, vectors_at_once
from .emit import KernelText
from .loops import Nest, dims_of, indented, merged, recovered
from .rereading import Kept, Loop, kept_of, loops_of
from .turned import IS_TURNED, turn, turned_loads

_PIECE: Final = 1 << 14
"""The elements of a piece of a row that is divided: more than a thread takes a microsecond for, and
so few that they are in a core's cache."""

_ROW: Final = "%row"
_ALONG: Final = "%along"
"""How the names of coordinates begin; no size has such a name."""


def lower_rows(group: Group, layout: Layout, target: Target, name: str = "") -> Kernel:
    """Return the kernel of a pass with reductions. Raises NoKernel."""
    plan, kept, reduced = _nested(group, layout)
    kernel = KernelText(group.function, plan.supplier.terms, plan.supplier.places, target, name)
    dtypes = [s.target.dtype for s in plan.stores]
    dtypes += [r.dtype for stage in plan.stages for r in stage]
    dtypes += [int64 for stage in plan.stages for r in stage if r.is_pair]
    along = kept if _is_column(plan, kept, reduced) else reduced
    kernel.choose_lanes(plan.roots, dtypes, along[-1][0] if along else None, layout)
    kernel.count(plan.roots)
    reductions = [r for stage in plan.stages for r in stage]
    if reduced and not (along is kept and any(r.is_pair for r in reductions)):
        kernel.at_once = vectors_at_once(kernel.terms, plan.roots, least=4)
    each = cost_along(plan.supplier.terms, plan.roots, [name for name, _ in reduced])
    row = _Pass(kernel, plan, kept, reduced, {})
    if row.is_divided:
        pieces, lines = row.pieces()
        count = str(kernel.dims.size(_count_of_pieces(plan.reduced)))
        kernel.loop("_pieces", count, each * _PIECE, pieces)
        kernel.loop("", "1", _PIECE, lines)
        return kernel.finish()
    length = kernel.dims.size(plan.reduced)
    cost = f"{each} * {length.inside(7)}"
    rows = kernel.dims.size(plan.kept)
    if loads := turned_loads(plan, kept, reduced):
        turned = _Pass(kernel, plan, kept, reduced, turn(kernel, loads, kept, reduced))
        kernel.loop("_columns", f"{IS_TURNED} * {rows.inside(7)}", cost, turned.lines())
        rows = Text(f"!{IS_TURNED} * {rows.inside(7)}")
    kernel.loop("", str(rows), cost, row.lines())
    return kernel.finish()


def _count_of_pieces(length: Dim) -> Dim:
    return (length + (_PIECE - 1)) // _PIECE


def go_through(
    kernel: KernelText,
    plan: RowPlan,
    kept: Coordinates,
    reduced: Coordinates,
    loaded: Mapping[Term, Term] | None = None,
) -> list[str]:
    """Return the lines of a loop over the rows from `begin` to `end` of a pass with reductions.
    `loaded` are results of passes before it, with the terms that load them."""
    return _Pass(kernel, plan, kept, reduced, loaded or {}).lines()


def _nested(group: Group, layout: Layout) -> tuple[RowPlan, Coordinates, Coordinates]:
    """Return the plan of a pass over as few nested dims as its operands allow, and the coordinates
    of the kept and of the reduced ones."""
    assert group.domain is not None
    kept = _coordinates(_ROW, group.domain.kept)
    reduced = _coordinates(_ALONG, group.domain.along)
    plan = row_plan(group, layout, kept, reduced)
    dims = [*dims_of(plan.supplier.terms, plan.roots), *(s.at for s in plan.stores)]
    rows, along = _merged(kept, dims), _merged(reduced, dims)
    if (rows, along) == (kept, reduced):
        return plan, kept, reduced
    return row_plan(group, layout, rows, along), rows, along


def _coordinates(prefix: str, sizes: Sequence[Dim]) -> Coordinates:
    return tuple((f"{prefix}{n}", d) for n, d in enumerate(sizes) if d != ONE)


def _merged(coordinates: Coordinates, dims: Sequence[Dim]) -> Coordinates:
    names = [name for name, _ in coordinates]
    sizes = merged(names, [size for _, size in coordinates], dims)
    return tuple(zip(names, sizes, strict=False))


def _is_column(
    plan: RowPlan,
    kept: Coordinates,
    reduced: Coordinates,
    loaded: Mapping[Term, Term] | None = None,
) -> bool:
    """Return whether more operands, and results of passes before, lie along the kept dims than
    along the reduced ones. One that has the same elements for all of the kept ones is read one by
    one, whichever way."""
    if not kept or not reduced:
        return False
    row, along = kept[-1][0], reduced[-1][0]
    loaded = loaded or {}
    own = (t for t in plan.supplier.terms.needed(plan.roots) if t not in loaded)
    loads = (t.detail for t in (*own, *loaded.values()))
    found = [dict(steps_of(a.offset)) for a in loads if isinstance(a, Access)]
    across = sum(s.get(row) == ONE and s.get(along) not in (None, ONE) for s in found)
    behind = sum(s.get(along) == ONE and row in s for s in found)
    return across > behind


@final
class _Pass:
    """The loop of a pass in the making."""

    def __init__(
        self,
        kernel: KernelText,
        plan: RowPlan,
        kept: Coordinates,
        reduced: Coordinates,
        loaded: Mapping[Term, Term],
    ) -> None:
        self._kernel: Final = kernel
        self._loaded: Final = loaded
        self._plan: Final = plan
        self._kept: Final = kept
        self._reduced: Final = reduced
        rows = [kernel.fresh("i" if n == 0 else f"i{n}") for n in range(len(kept))]
        along = [kernel.fresh("k" if n == 0 else f"k{n}") for n in range(len(reduced))]
        self._rows: Final = tuple(rows)
        self._along: Final = tuple(along)
        self._is_column: Final = _is_column(plan, kept, reduced, self._loaded)
        pairs = [*zip(kept, rows, strict=True), *zip(reduced, along, strict=True)]
        lane = (kept if self._is_column else reduced)[-1:]
        self._axes: Final = [
            Axis(name, kernel.place(text) if (name, size) in lane else text, None)
            for (name, size), text in pairs
        ]
        self._length: Final = kernel.dims.size(plan.reduced)
        self._totals: Final[dict[Reduction, tuple[str, ...]]] = {}

    def lines(self) -> list[str]:
        """Return the loop over rows from `begin` to `end`."""
        return self._columns() if self._is_column else self._by_row()

    @property
    def is_divided(self) -> bool:
        """Whether the pass is one row, long enough for several threads, that is gone through once
        and leaves nothing but what its elements combine to."""
        length, loops = self._plan.reduced.constant, loops_of(self._plan)
        if self._kept or len(self._reduced) != 1 or len(loops) != 1 or loops[0].stored:
            return False
        are_numbers = all(not r.is_pair and r.dtype != bool_ for r in loops[0].reductions)
        return are_numbers and (length is None or length >= 2 * _PIECE)

    def pieces(self) -> tuple[list[str], list[str]]:
        """Return the loop over the pieces of a row, and what combines them."""
        kernel, (loop,) = self._kernel, loops_of(self._plan)
        piece, row = (Block(kernel, self._axes, None) for _ in range(2))
        for reduction in loop.reductions:
            self._start(piece, reduction)
        name = self._reduced[0][0]
        inner = Block(kernel, self._axes, name, piece, name)
        self._body(inner, 0, loop, ())
        piece.lines.extend(kernel.over(self._along[0], "first", "last", inner.lines))
        count = _count_of_pieces(self._plan.reduced)
        for number, reduction in enumerate(loop.reductions):
            room = Scratch(number, reduction.dtype, (count * kernel.lanes,))
            pointer = kernel.argument(room, f"{reduction.reduced.var.name}_pieces")
            self._stored_apart(piece, row, reduction, Text(f"{pointer} + piece * {kernel.lanes}"))
        for stored in self._plan.stored_for_rows:
            row.store(stored.store)
        pieces = [
            "for (int64_t piece = begin; piece < end; piece++) {",
            f"    const int64_t first = piece * {_PIECE};",
            f"    const int64_t last = relay_least_i64(first + {_PIECE}, {self._length});",
            *indented(piece.lines),
            "}",
        ]
        return pieces, row.lines

    def _stored_apart(self, piece: Block, row: Block, reduction: Reduction, place: Text) -> None:
        """Write how the accumulator of a piece is stored, and how a row combines all of them."""
        kernel, dtype = self._kernel, reduction.dtype
        (total,) = self._totals[reduction]
        found = self._together(piece, reduction, total)
        piece.line(f"{call(kernel.function('store', dtype), place, found)};")
        whole = kernel.fresh(f"{reduction.reduced.var.name}_total")
        start = row.constant(identity(reduction), dtype)
        row.line(row.declared(kernel.vector(dtype), whole, start))
        stored = call(kernel.function("load", dtype), place)
        count = kernel.dims.size(_count_of_pieces(self._plan.reduced))
        row.line(f"for (int64_t piece = 0; piece < {count}; piece++)")
        row.line(f"    {whole} = {combined(self._kernel, reduction, Text(whole), stored)};")
        for term in reduction.results:
            row.set_axes(term, [])
        self._put_result(row, reduction, folded(self._kernel, reduction, whole))

    def _by_row(self) -> list[str]:
        """Return the loop with lanes along a row."""
        outer = Block(self._kernel, self._axes, None)
        blocks = [outer]
        for name, _ in self._kept:
            blocks.append(Block(self._kernel, self._axes, None, blocks[-1], name))
        self._go_through(blocks[-1])
        sizes = [size for _, size in self._kept]
        head = recovered(self._kernel, "row", self._rows, sizes)
        lines = [line for block in blocks[1:] for line in block.lines]
        body = [*head, *(lines if self._kept else outer.lines)]
        before = outer.lines if self._kept else []
        loop = "for (int64_t row = begin; row < end; row++) {"
        return [*before, loop, *indented(body), "}"]

    def _columns(self) -> list[str]:
        """Return the loop with a row for each lane."""
        names, sizes = zip(*self._kept, strict=True)
        nest = Nest(names, sizes, self._rows, tuple(self._axes))
        return nest.write(self._kernel, self._go_through)

    def _go_through(self, row: Block) -> None:
        """Write what is done for a row: its stages, and what is stored for it."""
        for reduction in (r for stage in self._plan.stages for r in stage):
            for term in reduction.results:
                row.set_axes(term, [self._kept[-1][0]] if self._kept else [])
        for term in self._loaded:
            row.set_axes(term, [name for name, _ in (*self._kept, *self._reduced)])
        loops = loops_of(self._plan)
        along = {name for name, _ in self._reduced}
        kept = kept_of(
            self._kernel.terms, loops, lambda term: not along.isdisjoint(row.axes_of(term))
        )
        for number, loop in enumerate(loops):
            self._loop(row, number, loop, kept)
        for stored in self._plan.stored_for_rows:
            row.store(stored.store)

    def _loop(self, row: Block, number: int, loop: Loop, kept: Sequence[Kept]) -> None:
        """Write one time through a row."""
        for reduction in loop.reductions:
            self._start(row, reduction)
        blocks, inner = self._blocks(row)
        self._body(inner, number, loop, kept)
        row.lines.extend(self._repeated(blocks, inner))
        for reduction in loop.reductions:
            self._finish(row, reduction)

    def _blocks(self, row: Block) -> tuple[Sequence[Block], Block]:
        """Return the blocks of the loops over the reduced dims, and the innermost one."""
        blocks = [row]
        lane = row.lane if self._is_column else None
        for name, _ in self._reduced[:-1]:
            blocks.append(Block(self._kernel, self._axes, lane, blocks[-1], name))
        if self._reduced:
            name = self._reduced[-1][0]
            inner_lane = lane if self._is_column else name
            blocks.append(Block(self._kernel, self._axes, inner_lane, blocks[-1], name))
        inner = blocks[-1] if self._reduced else Block(self._kernel, self._axes, lane, row, "%one")
        for term, load in self._loaded.items():
            blocks[-1].put(term, blocks[-1].text(load))
        return blocks[1:], inner

    def _body(self, inner: Block, number: int, loop: Loop, kept: Sequence[Kept]) -> None:
        """Write what a loop does for each place of a row."""
        needed = self._kernel.terms.needed(loop.roots)
        for place in kept:
            if place.is_loaded_in(number) and place.store.term in needed:
                inner.reload(place.store)
        for reduction in loop.reductions:
            self._step(inner, reduction)
        for place in kept:
            if place.made == number:
                inner.store(place.store)
        for output in loop.stored:
            inner.store(output.store)

    def _repeated(self, blocks: Sequence[Block], inner: Block) -> list[str]:
        """Return the loops over the reduced dims around lines."""
        kernel, sizes = self._kernel, [size for _, size in self._reduced]
        if not blocks:
            # One element is in the first lane alone.
            return ["{", "    enum { n = 1 };", *indented(inner.lines), "}"]
        if self._is_column:
            head = recovered(kernel, "along", self._along, sizes)
            lines = [line for block in blocks for line in block.lines]
            loop = f"for (int64_t along = 0; along < {self._length}; along++) {{"
            return [loop, *indented([*head, *lines]), "}"]
        size = kernel.dims.size(sizes[-1])
        index = self._along[-1]
        vectors = kernel.over(index, "0", str(size), inner.lines)
        if len(blocks) == 1:
            return vectors
        count = kernel.dims.size(product(tuple(sizes[:-1])))
        head = recovered(kernel, "along", self._along[:-1], sizes[:-1])
        lines = [line for block in blocks[:-1] for line in block.lines]
        loop = f"for (int64_t along = 0; along < {count}; along++) {{"
        return [loop, *indented([*head, *lines, *vectors]), "}"]

    def _start(self, row: Block, reduction: Reduction) -> None:
        """Write the accumulators of a reduction."""
        name, kernel = reduction.reduced.var.name, self._kernel
        total = kernel.fresh(f"{name}_total")
        start = row.constant(identity(reduction), reduction.dtype)
        vector = kernel.vector(reduction.dtype)
        if self._is_column or kernel.at_once == 1:
            row.line(row.declared(vector, total, start))
        else:
            starts = ", ".join([str(start)] * kernel.at_once)
            row.line(f"{vector} {total}[{kernel.at_once}] = {{{starts}}};")
        if not (reduction.is_pair and self._is_column):
            self._totals[reduction] = (total,)
            return
        place = kernel.fresh(f"{name}_place")
        row.line(f"{kernel.vector(int64)} {place} = {row.constant(-1, int64)};")
        self._totals[reduction] = (total, place)

    def _step(self, inner: Block, reduction: Reduction) -> None:
        """Write how the elements of a vector are taken up."""
        dtype = reduction.dtype
        value = inner.typed(reduction.operand, dtype)
        if reduction.is_pair and self._is_column:
            self._step_pair(inner, reduction, value)
            return
        if not self._is_column:
            function = self._kernel.function("where", dtype)
            value = call(
                function, inner.existing, value, inner.constant(identity(reduction), dtype)
            )
        (total,) = self._totals[reduction]
        so_far = inner.reference(total)
        inner.each(f"{so_far} = {combined(self._kernel, reduction, so_far, value)};")

    def _step_pair(self, inner: Block, reduction: Reduction, value: Text) -> None:
        kernel, dtype = self._kernel, reduction.dtype
        best, place = self._totals[reduction]
        if not value.text.isidentifier():
            name = kernel.fresh("value")
            inner.line(f"{kernel.vector(dtype)} {name} = {value};")
            value = Text(name)
        sign = "gt" if reduction.is_largest else "lt"
        parts = [call(kernel.function(sign, dtype), value, best)]
        if is_float(dtype):
            ne, eq = (kernel.function(f, dtype) for f in ("ne", "eq"))
            parts.append(Text(f"({call(ne, value, value)} & {call(eq, best, best)})"))
        parts.append(call(kernel.function("lt", int64), place, inner.constant(0, int64)))
        better = " | ".join(map(str, parts))
        taken = kernel.fresh("is_better")
        inner.line(f"{kernel.vector(bool_)} {taken} = {better};")
        index = [Dim.of(name) for name, _ in self._reduced]
        at = inner.place_of(linear(index, [size for _, size in self._reduced]))
        where = kernel.function("where", dtype)
        inner.line(f"{best} = {call(where, taken, value, best)};")
        inner.line(f"{place} = {call(kernel.function('where', int64), taken, at, place)};")

    def _finish(self, row: Block, reduction: Reduction) -> None:
        """Write the result of a reduction."""
        if comment := self._kernel.comment(reduction.reduced.var.span):
            row.line(comment)
        if reduction.is_pair:
            self._finish_pair(row, reduction)
            return
        (total,) = self._totals[reduction]
        if self._is_column:
            text = row.reference(total)
        else:
            text = folded(self._kernel, reduction, self._together(row, reduction, total))
        self._put_result(row, reduction, text)

    def _put_result(self, row: Block, reduction: Reduction, text: Text) -> None:
        """Write the result of a reduction, given what its elements combine to."""
        if reduction.reduced.combine == "mean":
            text = infix(text, "/", Text(f"({element_of(reduction.dtype).c}){self._length.atom}"))
        assert reduction.value is not None
        name = self._kernel.fresh(reduction.reduced.var.name)
        row.line(row.declared(self._kernel.vector(reduction.dtype), name, text))
        row.put(reduction.value, row.reference(name))

    def _together(self, row: Block, reduction: Reduction, total: str) -> str:
        """Return the accumulator of a row, after those of several vectors have become one."""
        if self._kernel.at_once == 1:
            return total
        width = self._kernel.at_once // 2
        while width:
            for place in range(width):
                one, other = Text(f"{total}[{place}]"), Text(f"{total}[{place + width}]")
                row.line(f"{one} = {combined(self._kernel, reduction, one, other)};")
            width //= 2
        return f"{total}[0]"

    def _finish_pair(self, row: Block, reduction: Reduction) -> None:
        kernel, name = self._kernel, reduction.reduced.var.name
        if self._is_column:
            best, place = map(Text, self._totals[reduction])
        else:
            (total,) = self._totals[reduction]
            best = Text(kernel.fresh(f"{name}_best"))
            found = folded(self._kernel, reduction, self._together(row, reduction, total))
            row.line(f"{kernel.vector(reduction.dtype)} {best} = {found};")
            place = self._found(row, reduction, best)
        for term, text, dtype, wish in (
            (reduction.value, best, reduction.dtype, name),
            (reduction.position, place, int64, f"{name}_position"),
        ):
            if term is not None:
                result = kernel.fresh(wish)
                row.line(f"{kernel.vector(dtype)} {result} = {text};")
                row.put(term, Text(result))

    def _found(self, row: Block, reduction: Reduction, best: Text) -> Text:
        """Write the loop that looks for the first element of a row that is the best one, and return
        its place: that is faster than to keep places beside the elements."""
        kernel, dtype = self._kernel, reduction.dtype
        place, hit = kernel.fresh("place"), kernel.fresh("hit")
        row.line(f"int64_t {place} = {-1 if self._reduced else 0};")
        if self._reduced:
            blocks, inner = self._blocks(row)
            value = inner.typed(reduction.operand, dtype)
            same = call(kernel.function("eq", dtype), value, best)
            if is_float(dtype):
                ne = kernel.function("ne", dtype)
                same = Text(f"({same} | ({call(ne, value, value)} & {call(ne, best, best)}))")
            bits = call(kernel.function("bits", bool_), infix(same, "&", inner.existing))
            index = [Dim.of(name) for name, _ in self._reduced]
            at = linear(index, [size for _, size in self._reduced])
            first = kernel.dims.whole(at, inner.scalar)
            inner.each(
                f"const unsigned long long {hit} = {place} < 0 ? {bits} : 0;",
                f"if ({hit}) {{ {place} = {first} + __builtin_ctzll({hit}); break; }}",
            )
            row.lines.extend(self._repeated(blocks, inner))
        return call(kernel.function("splat", int64), place)
