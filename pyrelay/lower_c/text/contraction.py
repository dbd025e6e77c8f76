"""Sums of products: tiles of the result, whose sums stay in registers.

A tile has a few rows, and a few vectors of columns. Operands that are elements of a tensor are read
where they lie, as long as the columns of the second lie one behind the other; others are computed
and stored first, in scratch. What is made of the sums follows for each tile, while it is in the
cache. Reductions are passes of their own, beside the sums or after them, over rows or columns of
what is made of these, which is stored. Where something else needs such a reduction, the sums are
stored, and what is made of them is a pass of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ...ir.dims import ONE, ZERO, Dim
from ...ir.types import DType
from ...kernels.calling import Layout, NoKernel, Read, Scratch
from ...kernels.groups import Group
from ...kernels.places import linear
from ...kernels.plans.code import Axis
from ...kernels.plans.contraction import ContractionPlan, Sum, contraction_plan
from ...kernels.plans.supplier import Store
from ...kernels.plans.terms import Access, Term
from ...kernels.plans.text import Text
from ..math import Target, element_of
from .block import Block
from .cost import cost_of
from .emit import BY_LIBRARY, IS_PACKED, KernelText
from .kernel import Kept, Kernel, Route
from .library import (
    BLOCKS,
    are_added,
    are_few,
    blocks_of,
    can_call,
    chosen,
    product,
    tile_size_lines,
)
from .loops import indented
from .reduced_sums import PLACE, are_last, write_beside, write_rows_of_sums
from .sides import Columns, Side, fewest_packed, is_readable
from .tiles import Tiles, tile_shape


def lower_contraction(
    group: Group,
    layout: Layout,
    target: Target,
    name: str = "",
    *,
    routed: bool = False,
    keeps: bool = False,
) -> Kernel:
    """Return the kernel of a group around sums of products; if it is `routed`, and a library of
    matrix products can compute the sums, either may, as an argument says. If it `keeps` operands
    packed, its caller may say that they are. Raises NoKernel."""
    plan = contraction_plan(group, layout)
    beside = {t for r in plan.beside for t in r.results}
    sums = {t for r in plan.reductions for t in r.results} | {s.result for s in plan.sums}
    for store, is_whole in plan.stores:
        needed = set(plan.supplier.terms.needed([store.term]))
        if not beside.isdisjoint(needed) and (is_whole or not sums.isdisjoint(needed)):
            raise NoKernel("what is made of sums of products needs a reduction beside them")
    return _Contraction(group, plan, layout, target, name, routed, keeps).kernel()


@final
class _Contraction:
    """The kernel of one plan in the making."""

    def __init__(
        self,
        group: Group,
        plan: ContractionPlan,
        layout: Layout,
        target: Target,
        name: str,
        routed: bool,
        keeps: bool,
    ) -> None:
        self._plan: Final = plan
        self._sorts: Final = plan.sorts.turned() if plan.is_turned else plan.sorts
        self._own: Final = ("n", "m") if plan.is_turned else ("m", "n")
        places = plan.supplier.places
        kernel = KernelText(group.function, plan.supplier.terms, places, target, name)
        self._code: Final = kernel
        self._dtype: Final = plan.accumulated
        dtypes = [plan.accumulated, *(s.target.dtype for s, _ in plan.stores)]
        dtypes += [r.dtype for r in plan.beside]
        kernel.choose_lanes(plan.roots, dtypes, self._own[1], layout)
        kernel.count(plan.roots)
        columns = self._sorts.columns.count.constant
        self._rows, self._vectors = tile_shape(target, kernel.lanes, columns)
        self._tile: Final = Tiles(kernel, self._dtype, self._vectors)
        self._width: Final = self._vectors * kernel.lanes
        self._batch: Final = kernel.fresh("b")
        self._row: Final = kernel.fresh("i")
        self._column: Final = kernel.fresh("j")
        self._along: Final = {c: kernel.fresh("k") for c in plan.loops.values()}
        kernel.take(
            *("rows", "columns", "tile", "tiles_m", "tiles_n", "row", "column", "p", "q"),
            *("high", "wide", "pitch", BY_LIBRARY, IS_PACKED, BLOCKS),
        )
        own = zip(self._own, (self._row, self._column), strict=True)
        axes = [("batch", self._batch), *own]
        self._axes: Final = [Axis(c, t, None) for c, t in (*axes, *self._along.items())]
        self._scratch = 0
        self._keeps: Final = keeps
        self._has_rest = True
        """Whether anything is made of sums that a library has stored."""
        self._is_routed: Final = routed and not layout.is_wide

    def kernel(self) -> Kernel:
        """Return the kernel."""
        plan, code = self._plan, self._code
        pairs = [self._sides(s) for s in plan.sums]
        is_last = are_last(plan)
        stores = self._whole_stores() if is_last else []
        wanted = [r.operand for r in plan.reductions] if is_last else [s.result for s in plan.sums]
        outputs = self._reloaded(stores)
        kept = {t: self._stored(t) for t in dict.fromkeys(wanted) if t not in outputs}
        rooms = self._rooms(pairs, {} if is_last else kept)
        sides = [(a, self._columns(s, b)) for s, (a, b) in zip(plan.sums, pairs, strict=True)]
        self._tiles(sides, rooms, stores, kept)
        if plan.reductions:
            write_rows_of_sums(code, plan, outputs | kept, is_last=is_last)
        write_beside(code, plan)
        has_tiles = bool(stores or kept)
        kinds = {columns.side.kind for _, columns in sides if columns.side is not None}
        return code.finish(self._tile.functions(self._rows, kinds) if has_tiles else "")

    def _whole_stores(self) -> list[Store]:
        """Return what is stored for each place of the result."""
        return [store for store, is_whole in self._plan.stores if is_whole]

    def _size(self, dim: Dim) -> Text:
        return self._code.dims.size(dim)

    # Operands.

    def _sides(self, made: Sum) -> tuple[Side, Side | None]:
        """Return where the rows of a sum lie, and its columns if they are read there."""
        rows, columns = self._operands(made)
        first = self._in_place(rows, self._own[0], made.along)
        second = self._in_place(columns, self._own[1], made.along)
        if first is None:
            first = self._computed(rows, made.along)
        if second is not None and not is_readable(first, second):
            second = None
        return first, second

    def _operands(self, made: Sum) -> tuple[Term, Term]:
        """Return the element of each operand of a sum, that with the rows first."""
        first, second = made.sides
        return (second, first) if self._plan.is_turned else (first, second)

    def _columns(self, made: Sum, side: Side | None) -> Columns:
        return Columns(self._packed(self._operands(made)[1], made.along, side), side)

    def _rooms(
        self, pairs: Sequence[tuple[Side, Side | None]], loaded: Mapping[Term, Term]
    ) -> list[str]:
        """Return where a library stores each sum, if it can compute them: where the sum itself is
        stored, or in scratch. `loaded` are sums that are stored alone, with terms that load
        them."""
        plan, sorts = self._plan, self._sorts
        has_tiles = bool(plan.reductions) or bool(self._whole_stores())
        if not (self._is_routed and has_tiles and can_call(self._dtype, pairs)):
            return []
        shape = (sorts.batch.count, sorts.rows.count, sorts.columns.count)
        summed = tuple(self._count(made.along) for made in plan.sums)
        if are_few((*shape, *summed)):
            return []
        forms = tuple(f"{a.own.text == '1'} {b.own.text == '1'}" for a, b in pairs if b)
        rooms = self._stored_as_they_are(loaded)
        self._has_rest = not rooms
        begin = self._scratch
        if self._has_rest:
            rooms = [self._room(shape, "products_at") for _ in pairs]
        numbers = tuple(range(begin, self._scratch))
        self._code.route = Route(self._dtype, shape, summed, forms, numbers)
        self._code.compute(*blocks_of(self._code, shape, summed))
        return rooms

    def _stored_as_they_are(self, loaded: Mapping[Term, Term]) -> list[str]:
        """Return where each sum is stored, if nothing else is made of them before all are."""
        if loaded:
            found = [loaded[s.result].detail for s in self._plan.sums]
            return [str(access.operand) for access in found if isinstance(access, Access)]
        results = [s.result for s in self._plan.sums]
        stores = {store.term: store for store in self._whole_stores()}
        for term, store in stores.items():
            if are_added(term, results):
                stores = dict.fromkeys(results, store)
        sums = [stores[r] for r in results if r in stores]
        at = self._place_of_sum()
        if len(sums) < len(results) or len(self._plan.stores) != len({id(s) for s in sums}):
            return []
        if any(s.at != at or s.target.dtype != self._dtype for s in sums):
            return []
        return [self._code.argument(s.target, s.name) for s in sums]

    def _count(self, along: str) -> Dim:
        """Return the size of what is summed along a coordinate."""
        return next(c for c, name in self._plan.loops.items() if name == along)

    def _in_place(self, term: Term, own: str, along: str) -> Side | None:
        """Return an operand that is the elements of a tensor, evenly apart; None for any other."""
        access = term.detail
        if term.op != "load" or term.operands or not isinstance(access, Access):
            return None
        if access.dtype != self._dtype or not isinstance(access.operand, int):
            return None
        terms = self._plan.supplier.terms
        if any(terms.found(access.offset)):
            return None
        steps: list[Dim] = []
        rest = access.offset
        for name in ("batch", own, along):
            step = rest.rename({name: Dim.of(name) + 1}) - rest
            if step.names() & {"batch", "m", "n", *self._along}:
                return None
            steps.append(step)
            rest = rest.rename({name: ZERO})
        if rest.names() & {"batch", "m", "n", *self._along}:
            return None
        wish = f"{self._code.operand_name(access.operand)}_at"
        pointer = self._code.argument(Read(access.operand, access.dtype), wish)
        if rest != ZERO:
            pointer = f"({pointer} + {self._whole(rest)})"
        if own == self._own[1] and steps[1] == ZERO:
            return None  # its columns are one number
        batch, each, summed = map(self._whole, steps)
        return Side(pointer, batch, each, summed, access.operand)

    def _whole(self, dim: Dim) -> Text:
        return self._code.dims.whole(dim, lambda _: None)

    def _computed(self, term: Term, along: str) -> Side:
        """Write a pass that computes the rows of a sum and stores them; return them."""
        code, sorts, count = self._code, self._sorts, self._count(along)
        rows, batch = sorts.rows.count, sorts.batch.count
        pointer = self._room((batch, rows, count), "rows_at")
        outer, first, inner, each = self._blocks(along, along, self._own[0])
        value = each.typed(term, self._dtype)
        place, index = self._row, self._along[along]
        at = f"({self._batch} * {self._inner(rows)} + {place}) * {self._inner(count)} + {index}"
        each.line(f"{code.function('store_part', self._dtype)}({pointer} + {at}, {value}, n);")
        lines = [
            *outer.lines,
            self._loop(self._batch, self._size(batch)),
            *indented(first.lines),
            f"    OVER ({index}, begin, end, {code.lanes},",
            *indented(indented(inner.lines)),
            f"        {self._loop(place, self._size(rows))}",
            *indented(indented(indented(each.lines))),
            "        }",
            "    );",
            "}",
        ]
        cost = (cost_of(code.terms, [term]) + 2) * ((batch * rows).constant or _USUAL)
        code.loop(f"_{pointer}", str(self._size(count)), cost, lines)
        return Side(pointer, self._size(rows * count), self._size(count), Text("1"))

    def _packed(self, term: Term, along: str, side: Side | None) -> str:
        """Write a pass that computes the columns of a sum and packs them; return where they are."""
        code, sorts, count = self._code, self._sorts, self._count(along)
        columns, batch, width = sorts.columns.count, sorts.batch.count, self._width
        panels = (columns + (width - 1)) // width
        pointer = self._room((batch, panels * width, count), "columns_at")
        outer, first, inner, each = self._blocks(self._own[1], self._own[1], along)
        value = each.typed(term, self._dtype)
        place, index = self._along[along], self._column
        panel = f"{self._batch} * {self._inner(panels)} + panel"
        at = f"(({panel}) * {self._inner(count)} + {place}) * {width} + ({index} - column)"
        each.line(f"{code.function('store_part', self._dtype)}({pointer} + {at}, {value}, n);")
        packed = [
            f"OVER ({index}, column, last, {code.lanes},",
            *indented(inner.lines),
            f"    {self._loop(place, self._size(count))}",
            *indented(indented(each.lines)),
            "    }",
            ");",
        ]
        if side is not None and side.own.text != "1":
            at = f"({panel}) * {self._inner(count)} * {width} + ({index} - column)"
            q = f"{side.pointer} + {self._batch} * {side.batch.inside(7)}"
            q = f"{q} + {index} * {side.own.inside(7)}"
            given = f"{q}, {side.own}, {pointer} + {at}, {self._size(count)}, n"
            call = f"{code.function_name}_pack({given});"
            packed = [f"OVER ({index}, column, last, {code.lanes}, {call});"]
        lines = [
            *outer.lines,
            "for (int64_t panel = begin; panel < end; panel++) {",
            f"    const int64_t column = panel * {width};",
            f"    const int64_t last = relay_least_i64(column + {width}, {self._size(columns)});",
            f"    {self._loop(self._batch, self._size(batch))}",
            *indented(indented(first.lines)),
            *indented(indented(packed)),
            "    }",
            "}",
        ]
        cost = (cost_of(code.terms, [term]) + 2) * self._vectors
        cost *= (batch * count).constant or _USUAL
        number = str(self._size(panels))
        if side is not None:
            number = f"{self._size(sorts.rows.count)} < {fewest_packed(side)} ? 0 : {number}"
        if code.route is not None:
            number = f"{BY_LIBRARY} ? 0 : {number}"
        if self._keeps and side is not None:
            code.kept.append(Kept(self._scratch - 1, side.operand))
            number = f"{IS_PACKED} ? 0 : {number}"
        code.loop(f"_{pointer}", number, cost, lines)
        return pointer

    def _room(self, shape: tuple[Dim, ...], wish: str, dtype: DType | None = None) -> str:
        scratch = Scratch(self._scratch, dtype or self._dtype, shape)
        self._scratch += 1
        return self._code.argument(scratch, wish)

    def _blocks(self, lane: str, loop: str, other: str) -> tuple[Block, Block, Block, Block]:
        """Return nested blocks: around all loops, in that over the batch, in that over lanes, and
        in the one inside."""
        outer = Block(self._code, self._axes, None)
        first = Block(self._code, self._axes, None, outer, "batch")
        inner = Block(self._code, self._axes, lane, first, loop)
        return outer, first, inner, Block(self._code, self._axes, lane, inner, other)

    @staticmethod
    def _loop(name: str, count: Text) -> str:
        return f"for (int64_t {name} = 0; {name} < {count}; {name}++) {{"

    def _inner(self, dim: Dim) -> str:
        return self._size(dim).inside(7)

    # Tiles.

    def _tiles(
        self,
        sides: Sequence[tuple[Side, Columns]],
        rooms: Sequence[str],
        stores: Sequence[Store],
        kept: Mapping[Term, Term],
    ) -> None:
        """Write the loop over tiles: their sums, and what is stored that is made of them. Those of
        a library are larger, and it stores their sums in `rooms`. `kept` are stored in scratch,
        with the terms that load them later."""
        plan, code, sorts = self._plan, self._code, self._sorts
        if not stores and not kept:
            return
        rows, columns = self._size(sorts.rows.count), self._size(sorts.columns.count)
        width, high = self._width, self._rows
        outer = Block(code, self._axes, None)
        batch = Block(code, self._axes, None, outer, "batch")
        own, lanes = self._own
        row = Block(code, self._axes, None, batch, own)
        lane = Block(code, self._axes, lanes, row, lanes)
        sums = [self._tile_sum(made, lane) for made in plan.sums]
        for store in stores:
            lane.store(store)
        for term, load in kept.items():
            self._keep(lane, term, load)
        i, j, c = self._row, self._column, element_of(self._dtype).c
        lines = [
            *outer.lines,
            f"{c} {', '.join(f'{s}[{high * width}]' for s in sums)};",
            *tile_size_lines(high, width, has_library=bool(rooms)),
            f"const int64_t tiles_m = ({rows} + high - 1) / high;",
            f"const int64_t tiles_n = ({columns} + wide - 1) / wide;",
            "for (int64_t tile = begin; tile < end; tile++) {",
            f"    const int64_t {self._batch} = tile / (tiles_m * tiles_n);",
            "    const int64_t first = tile % tiles_m * high;",
            "    const int64_t column = tile / tiles_m % tiles_n * wide;",
            f"    const int64_t rows = relay_least_i64({rows} - first, high);",
            f"    const int64_t columns = relay_least_i64({columns} - column, wide);",
        ]
        lines += indented(self._sums_of_tile(sums, sides, rooms))
        lines += [
            *indented(batch.lines),
            "    for (int64_t row = 0; row < rows; row++) {",
            f"        const int64_t {i} = first + row;",
            *indented(indented(row.lines)),
            f"        OVER ({j}, column, column + columns, {code.lanes},",
            *indented(indented(indented(lane.lines))),
            "        );",
            "    }",
            "}",
        ]
        tiles = f"(({rows} + {high - 1}) / {high}) * (({columns} + {width - 1}) / {width})"
        if sorts.batch.count != ONE:
            tiles = f"{self._size(sorts.batch.count)} * {tiles}"
        summed = sum((self._count(s.along).constant or _USUAL) for s in plan.sums)
        cost = str(high * self._vectors * (summed + cost_of(code.terms, plan.roots)))
        if rooms:
            tiles, cost = chosen(f"{BLOCKS}.count", tiles), chosen(f"{BLOCKS}.cost", cost)
        code.loop("", tiles, cost, lines)

    def _sums_of_tile(
        self,
        names: Sequence[str],
        sides: Sequence[tuple[Side, Columns]],
        rooms: Sequence[str],
    ) -> list[str]:
        """Return the lines that compute the sums of a tile."""
        sorts, c = self._sorts, element_of(self._dtype).c
        calls: list[str] = []
        total = self._size(sorts.rows.count)
        for made, name, pair in zip(self._plan.sums, names, sides, strict=True):
            count = self._size(self._count(made.along))
            calls += self._tile.sums(name, *pair, count, total, self._batch)
        if not rooms:
            return calls
        rows, columns = self._inner(sorts.rows.count), self._inner(sorts.columns.count)
        at = f"({self._batch} * {rows} + first) * {columns} + column"
        found = [f"const int64_t pitch = {chosen(columns, str(self._width))};"]
        products: list[str] = []
        for made, name, room, (first, second) in zip(
            self._plan.sums, names, rooms, sides, strict=True
        ):
            found.append(f"const {c} *{name}_from = {chosen(f'{room} + {at}', name)};")
            assert second.side is not None
            count = self._size(self._count(made.along))
            to = f"{room} + {at}, {columns}, {int(room in rooms[: len(products)])}"
            products.append(product(c, self._batch, (first, second.side), count, to))
        if not self._has_rest:
            products.append("continue;")
        return [
            *found,
            f"if ({BY_LIBRARY}) {{",
            *indented(products),
            "} else {",
            *indented(calls),
            "}",
        ]

    def _tile_sum(self, made: Sum, lane: Block) -> str:
        """Have lanes read a sum from those of a tile; return the name of these."""
        name, load = self._code.fresh("sums"), self._code.function("load_part", self._dtype)
        lane.set_axes(made.result, PLACE)
        at = f"{name} + (row * {self._width} + {self._column} - column)"
        if self._code.route is not None:
            at = f"{name}_from + (row * pitch + {self._column} - column)"
        lane.put(made.result, Text(f"{load}({at}, n)"))
        return name

    # Reductions.

    def _stored(self, term: Term) -> Term:
        """Return the term that loads another from scratch, where the loop over tiles stores it."""
        sorts, dtype = self._sorts, term.dtype or self._dtype
        shape = (sorts.batch.count, sorts.rows.count, sorts.columns.count)
        access = Access(self._room(shape, "sums_at", dtype), self._place_of_sum(), dtype)
        return self._plan.supplier.terms.make("load", dtype=dtype, detail=access)

    def _reloaded(self, stores: Sequence[Store]) -> dict[Term, Term]:
        """Return the terms that load others from the outputs that the loop over tiles stores."""
        make = self._plan.supplier.terms.make
        found: dict[Term, Term] = {}
        for store in stores:
            dtype = store.target.dtype
            if self._plan.reductions and store.term.dtype == dtype:
                access = Access(self._code.argument(store.target, store.name), store.at, dtype)
                found[store.term] = make("load", dtype=dtype, detail=access)
        return found

    def _place_of_sum(self) -> Dim:
        """Return where a sum lies among all, row by row."""
        sorts = self._sorts
        shape = (sorts.batch.count, sorts.rows.count, sorts.columns.count)
        names = ("batch", *self._own)
        index = [ZERO if n == ONE else Dim.of(c) for c, n in zip(names, shape, strict=True)]
        return linear(index, shape)

    def _keep(self, lane: Block, term: Term, load: Term) -> None:
        """Write the store of a term where another loads it later."""
        access = load.detail
        assert isinstance(access, Access)
        where = lane.behind(str(access.operand), access.offset)
        stored = self._code.function("store_part", access.dtype)
        lane.line(f"{stored}({where}, {lane.text(term)}, n);")


_USUAL: Final = 256
"""A count that only the call knows."""
