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

from ...ir.dims import ONE
from ...kernels.calling import Layout, NoKernel
from ...kernels.groups import Group
from ...kernels.plans.contraction import ContractionPlan, Sum, contraction_plan
from ...kernels.plans.supplier import Store
from ...kernels.plans.terms import Access, Term
from ...kernels.plans.text import Text
from ..kernel import LIBRARY, Kernel, Route
from ..math import Target, element_of
from .block import Block
from .cost import cost_of, vectors_at_once
from .emit import BY_LIBRARY, IS_PACKED, KernelText
from .library import (
    BLOCKS,
    are_added,
    are_few,
    blocks_of,
    can_call,
    chosen,
    product,
)
from .loops import either, indented
from .operands import USUAL, Operands
from .pieces import Pieces, added, in_pieces
from .product_loops import ProductLoops, tile_loop
from .reduced_sums import PLACE, are_last, write_beside, write_rows_of_sums
from .sides import Columns, Rows, Side
from .tiles import Tiles, tile_shape
from .transposed import (
    COLUMNS,
    IS_TRANSPOSED,
    is_transposed,
    may_transpose,
    transposed_shape,
)


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
        places, terms = plan.supplier.places, plan.supplier.terms
        code = KernelText(group.function, terms, places, target, name)
        self._code: Final = code
        self._loops: Final = ProductLoops(code, plan, layout)
        shape = tile_shape(target, code.lanes, self._loops.sorts.columns.count.constant)
        across = transposed_shape(target, code.lanes)
        self._tile: Final = Tiles(code, plan.accumulated, *shape, across)
        self._operands: Final = Operands(self._loops, self._tile, keeps=keeps)
        code.take(
            *("rows", "columns", "tile", "tiles_m", "tiles_n", "row", "column", "p", "q", "c"),
            *("high", "wide", "pitch", "most", "panel", "left", "from", "count", "total", "to"),
            "panels",
            *(BY_LIBRARY, IS_PACKED, IS_TRANSPOSED, BLOCKS),
        )
        self._pieces: Final[dict[Sum, Pieces | None]] = {}
        self._keeps: Final = keeps
        self._transposes = False
        """Whether a call may compute tiles of the transposed result."""
        self._has_rest = True
        """Whether anything is made of sums that a library has stored."""
        self._is_routed: Final = routed and not layout.is_wide

    def kernel(self) -> Kernel:
        """Return the kernel."""
        plan, code = self._plan, self._code
        pairs = [self._operands.sides(s) for s in plan.sums]
        is_last = are_last(plan)
        stores = self._whole_stores() if is_last else []
        wanted = [r.operand for r in plan.reductions] if is_last else [s.result for s in plan.sums]
        outputs = self._reloaded(stores)
        kept = {t: self._stored(t) for t in dict.fromkeys(wanted) if t not in outputs}
        rooms = self._rooms(pairs, {} if is_last else kept)
        has_tiles = bool(stores or kept)
        self._transposes = has_tiles and not self._keeps and self._may_transpose(pairs)
        size = self._tile_size(has_library=bool(rooms))
        sides = [
            (
                self._operands.rows(s, a),
                self._operands.columns(s, a, b, transposes=self._transposes),
            )
            for s, (a, b) in zip(plan.sums, pairs, strict=True)
        ]
        if has_tiles:
            for made, (first, second) in zip(plan.sums, pairs, strict=True):
                self._pieces[made] = in_pieces(self._loops, self._tile, made, first, second)
        self._tiles(sides, rooms, stores, kept, size)
        if plan.reductions:
            write_rows_of_sums(code, plan, outputs | kept, is_last=is_last)
        write_beside(code, plan)
        kinds = {columns.side.kind for _, columns in sides if columns.side is not None}
        return code.finish(
            self._tile.functions(kinds, transposes=self._transposes) if has_tiles else ""
        )

    def _may_transpose(self, pairs: Sequence[tuple[Side, Side | None]]) -> bool:
        """Return whether a call may compute tiles of the transposed result."""
        columns, shape = self._loops.shape[2], self._tile.transposed
        return all(may_transpose(b, columns, shape) for _, b in pairs)

    def _tile_size(self, *, has_library: bool) -> tuple[str, str]:
        """Return the texts of the rows and columns of a tile, which a call chooses where there are
        several ways to compute its sums."""
        high, wide = str(self._tile.rows), str(self._tile.width)
        if self._transposes:
            _, rows, columns = map(self._loops.size, self._loops.shape)
            shape = self._tile.transposed
            condition = is_transposed(rows, columns, shape)
            condition = f"!{BY_LIBRARY} && {condition}" if has_library else condition
            self._code.compute("int", IS_TRANSPOSED, condition)
            high = f"{IS_TRANSPOSED} ? {shape.width} : {high}"
            wide = f"{IS_TRANSPOSED} ? {COLUMNS} : {wide}"
        if has_library:
            high, wide = chosen(f"{BLOCKS}.rows", high), chosen(f"{BLOCKS}.columns", wide)
        if not (self._transposes or has_library):
            return high, wide
        self._code.compute("int64_t", "high", high)
        self._code.compute("int64_t", "wide", wide)
        return "high", "wide"

    def _whole_stores(self) -> list[Store]:
        """Return the stores for each place of the result."""
        return [store for store, is_whole in self._plan.stores if is_whole]

    def _rooms(
        self, pairs: Sequence[tuple[Side, Side | None]], loaded: Mapping[Term, Term]
    ) -> list[str]:
        """Return where a library stores each sum, if it can compute them: where the sum itself is
        stored, or in scratch. `loaded` are sums that are stored alone, with terms that load
        them."""
        plan, loops = self._plan, self._loops
        has_tiles = bool(plan.reductions) or bool(self._whole_stores())
        if not (self._is_routed and has_tiles and can_call(loops.dtype, pairs)):
            return []
        shape = loops.shape
        summed = tuple(loops.count(made.along) for made in plan.sums)
        if are_few((*shape, *summed)):
            return []
        forms = tuple(f"{a.own.text == '1'} {b.own.text == '1'}" for a, b in pairs if b)
        rooms = self._stored_as_they_are(loaded)
        self._has_rest = not rooms
        if self._has_rest:
            rooms = self._output_in_between()
        if not rooms:
            rooms = [loops.room(shape, "products_at", way=LIBRARY) for _ in pairs]
        self._code.route = Route(loops.dtype, shape, summed, forms)
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
        at = self._loops.place_of_sum()
        if len(sums) < len(results) or len(self._plan.stores) != len({id(s) for s in sums}):
            return []
        if any(s.at != at or s.target.dtype != self._loops.dtype for s in sums):
            return []
        return [self._code.argument(s.target, s.name) for s in sums]

    def _output_in_between(self) -> list[str]:
        """Return the one output, if it has room for the one sum until what is made of it is stored
        at its place."""
        plan, at = self._plan, self._loops.place_of_sum()
        match self._whole_stores():
            case [store] if len(plan.stores) == len(plan.sums) == 1 and not plan.reductions:
                fits = store.at == at and store.target.dtype == self._loops.dtype
                is_new = store.target.overwrites is None
                return [self._code.argument(store.target, store.name)] if fits and is_new else []
            case _:
                return []

    # Tiles.

    def _tiles(
        self,
        sides: Sequence[tuple[Rows, Columns]],
        rooms: Sequence[str],
        stores: Sequence[Store],
        kept: Mapping[Term, Term],
        size: tuple[str, str],
    ) -> None:
        """Write the loop over tiles of some size: their sums, and what is stored that is made of
        them. Those of a library are larger, and it stores their sums in `rooms`. `kept` are stored
        in scratch, with the terms that load them later."""
        plan, code, loops = self._plan, self._code, self._loops
        if not stores and not kept:
            return
        rows, columns = loops.size(loops.shape[1]), loops.size(loops.shape[2])
        code.at_once = self._at_once([*(s.term for s in stores), *kept])
        code.compute("int64_t", "most", self._strip(*sides[0], plan.sums[0], size[0]))
        axes = loops.axes_at(code.place(loops.column))
        outer = Block(code, axes, None)
        batch = Block(code, axes, None, outer, "batch")
        own, lanes = loops.own
        row = Block(code, axes, None, batch, own)
        lane = Block(code, axes, lanes, row, lanes)
        sums = [self._tile_sum(made, lane) for made in plan.sums]
        for store in stores:
            lane.store(store)
        for term, load in kept.items():
            self._keep(lane, term, load)
        most = self._tile.rows * self._tile.width
        if self._transposes:
            most = max(most, self._tile.transposed.width * COLUMNS)
        i, c = loops.row, element_of(loops.dtype).c
        lines = [
            *outer.lines,
            f"{c} {', '.join(f'{s}[{most}]' for s in sums)};",
            *tile_loop(loops.batch, rows, columns, size),
            *indented(self._sums_of_tile(sums, sides, rooms)),
            *indented(batch.lines),
            "    for (int64_t row = 0; row < rows; row++) {",
            f"        const int64_t {i} = first + row;",
            *indented(indented(row.lines)),
            *indented(indented(code.over(loops.column, "column", "column + columns", lane.lines))),
            "    }",
            "}",
        ]
        code.at_once = 1
        high, wide = size
        tiles = f"(({rows} + {high} - 1) / {high}) * (({columns} + {wide} - 1) / {wide})"
        if loops.shape[0] != ONE:
            tiles = f"{loops.size(loops.shape[0])} * {tiles}"
        summed = sum((loops.count(s.along).constant or USUAL) for s in plan.sums)
        cost = f"{high} * {wide} / {code.lanes} * {summed + cost_of(code.terms, plan.roots)}"
        code.loop("", tiles, cost, lines, self._operands.own)

    def _strip(self, first: Rows, second: Columns, made: Sum, high: str) -> str:
        """Return how many rows of tiles meet a panel before the next. Where threads pack columns
        for themselves it is all, so that no other thread packs a panel too. Threads divide the rows
        where these lie across what is summed, as in the gradient of weights: the next product reads
        the weights, and their update writes them, as rows."""
        loops = self._loops
        tiles = f"({loops.size(loops.shape[1])} + {high} - 1) / {high}"
        strip = f"relay_usual_strip({tiles})"
        if second.slots:
            own = tiles
            if first.side.is_across:
                each = f"{loops.inner(loops.count(made.along))} * {high}"
                each = f"{each} * {element_of(loops.dtype).bytes}"
                own = f"relay_strip(run, {tiles}, {each})"
            strip = f"{second.slots} ? {own} : {strip}"
        if first.slots:
            strip = f"relay_least_i64({first.slots} ? {first.slots} : INT64_MAX, {strip})"
        return strip

    def _at_once(self, roots: Sequence[Term]) -> int:
        """Return how many vectors of a tile are computed together."""
        wanted = vectors_at_once(self._code.terms, roots)
        return next(n for n in (4, 2, 1) if n <= min(wanted, self._tile.vectors))

    def _sums_of_tile(
        self,
        names: Sequence[str],
        sides: Sequence[tuple[Rows, Columns]],
        rooms: Sequence[str],
    ) -> list[str]:
        """Return the lines that compute the sums of a tile."""
        loops, c = self._loops, element_of(self._loops.dtype).c
        calls: list[str] = []
        across: list[str] = []
        total = loops.size(loops.shape[1])
        for made, name, pair in zip(self._plan.sums, names, sides, strict=True):
            count = loops.size(loops.count(made.along))
            whole = self._tile.sums(name, *pair, count, total, loops.batch)
            pieces = self._pieces[made]
            if pieces is not None:
                parts = added(loops, self._tile, pieces, name)
                whole = either(pieces.condition, parts, whole)
            calls += whole
            if self._transposes:
                across += self._tile.transposed_sums(name, pair[1], count, loops.batch)
        if self._transposes:
            calls = either(IS_TRANSPOSED, across, calls)
        if not rooms:
            return calls
        rows, columns = loops.inner(loops.shape[1]), loops.inner(loops.shape[2])
        at = f"({loops.batch} * {rows} + first) * {columns} + column"
        found = [f"const int64_t pitch = {chosen(columns, self._pitch())};"]
        products: list[str] = []
        for made, name, room, (first, second) in zip(
            self._plan.sums, names, rooms, sides, strict=True
        ):
            found.append(f"const {c} *{name}_from = {chosen(f'{room} + {at}', name)};")
            assert second.side is not None
            count = loops.size(loops.count(made.along))
            to = f"{room} + {at}, {columns}, {int(room in rooms[: len(products)])}"
            products.append(product(c, loops.batch, (first.side, second.side), count, to))
        if not self._has_rest:
            products.append("continue;")
        return [*found, *either(BY_LIBRARY, products, calls)]

    def _pitch(self) -> str:
        """Return the text of how far rows of the sums of a tile lie apart."""
        width = str(self._tile.width)
        return f"({IS_TRANSPOSED} ? {COLUMNS} : {width})" if self._transposes else width

    def _tile_sum(self, made: Sum, lane: Block) -> str:
        """Have lanes read a sum from those of a tile; return the name of these."""
        name, load = self._code.fresh("sums"), self._code.function("load_part", self._loops.dtype)
        lane.set_axes(made.result, PLACE)
        pitch = self._pitch()
        column = self._code.place(self._loops.column)
        at = f"{name} + (row * {pitch} + {column} - column)"
        if self._code.route is not None:
            at = f"{name}_from + (row * pitch + {column} - column)"
        lane.put(made.result, Text(f"{load}({at}, n)"))
        return name

    # Reductions.

    def _stored(self, term: Term) -> Term:
        """Return the term that loads another from scratch, where the loop over tiles stores it."""
        loops, dtype = self._loops, term.dtype or self._loops.dtype
        access = Access(loops.room(loops.shape, "sums_at", dtype), loops.place_of_sum(), dtype)
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

    def _keep(self, lane: Block, term: Term, load: Term) -> None:
        """Write the store of a term where another loads it later."""
        access = load.detail
        assert isinstance(access, Access)
        where = lane.behind(str(access.operand), access.offset)
        stored = self._code.function("store_part", access.dtype)
        lane.each(f"{stored}({where}, {lane.text(term)}, n);")
