"""The operands of sums of products: where they lie, and the passes that compute or pack them."""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import ONE, ZERO, Dim
from ...kernels.calling import Read
from ...kernels.plans.contraction import Sum
from ...kernels.plans.terms import Access, Term
from ...kernels.plans.text import Text
from ..kernel import Kept
from ..math import element_of
from .cost import cost_of
from .emit import BY_LIBRARY, IS_PACKED
from .loops import either, indented
from .product_loops import ProductLoops, loop
from .sides import LONG, Columns, Rows, Side, fewest_packed, is_readable
from .tiles import PANELS, Tiles
from .transposed import IS_TRANSPOSED

_MOST_BYTES: Final = 1 << 20
"""The rows of a product may have so many bytes to stay in the cache of a core, half of it."""

USUAL: Final = 256
"""A count that only the call knows."""


@final
class Operands:
    """The operands of one kernel. With `keeps` the caller may say that they are still packed."""

    def __init__(self, loops: ProductLoops, tiles: Tiles, *, keeps: bool) -> None:
        self._loops: Final = loops
        self._tiles: Final = tiles
        self._keeps: Final = keeps
        self.own: Final[dict[str, str]] = {}
        """The rooms in which each thread packs panels of columns and rows for itself."""

    def sides(self, made: Sum) -> tuple[Side, Side | None]:
        """Return where the rows of a sum lie, and its columns if they are read there; write the
        pass that computes rows which are no elements of a tensor."""
        rows, columns = self._terms(made)
        own = self._loops.own
        first = self._in_place(rows, own[0], made.along)
        second = self._in_place(columns, own[1], made.along)
        if first is None:
            first = self._computed(rows, made.along)
        if second is not None and not is_readable(first, second):
            second = None
        return first, second

    def columns(self, made: Sum, rows: Side, side: Side | None, *, transposes: bool) -> Columns:
        """Return the columns of a sum; write the pass that packs them, or with `transposes` the
        rows where a call has few."""
        return self._packed(made, side, rows, transposes=transposes)

    def rows(self, made: Sum, side: Side) -> Rows:
        """Return the rows of a sum; write the pass that packs those which lie across what is
        summed, where that has many places."""
        loops, code = self._loops, self._loops.code
        count = loops.count(made.along)
        if side.along.text == "1" or side.own.text != "1":
            return Rows(side)
        if count.constant is not None and count.constant <= LONG:
            return Rows(side)
        high, (batch, rows, _) = self._tiles.rows, loops.shape
        panels = (rows + (high - 1)) // high
        pointer = loops.packed_room((batch, panels * high, count), "rows_at")
        packs = code.fresh("packs")
        has_route = f"!{BY_LIBRARY} && " if code.route is not None else ""
        code.compute("int", packs, f"{has_route}{loops.size(count)} > {LONG}")
        place, c = loops.along[made.along], element_of(loops.dtype).c
        panel = f"({loops.batch} * {loops.inner(panels)} + panel + u) * {loops.inner(count)}"
        to, number = f"{pointer} + {panel} * {high}", f"{packs} ? {loops.size(panels)} : 0"
        slots = self._slots("rows", number, f"{loops.inner(count)} * {high}", "0")
        if slots:
            to = f"{slots} ? relay_panel(&relay_own_rows, panel + u) : {to}"
            number = f"{slots} ? 0 : {number}"
        lines = [
            f"for (int64_t panel = begin; panel < end; panel += {PANELS}) {{",
            f"    const int64_t several = relay_least_i64(end - panel, {PANELS});",
            f"    {loop(loops.batch, loops.size(batch))}",
            f"        {c} *panels[{PANELS}];",
            f"        for (int64_t u = 0; u < several; u++) panels[u] = {to};",
            f"        {loop(place, loops.size(count))}",
            "            for (int64_t u = 0; u < several; u++) {",
            f"                const int64_t first = (panel + u) * {high};",
            f"                const {c} *p = {side.at(loops.batch, 'first')} + "
            f"{place} * {side.along.inside(7)};",
            f"                {c} *to = panels[u] + {place} * {high};",
            f"                const int64_t last = {loops.size(rows)} - first - 1;",
            f"                if (last >= {high - 1}) memcpy(to, p, {high} * sizeof *p);",
            f"                else for (int64_t row = 0; row < {high}; row++) "
            "to[row] = p[relay_least_i64(row, last)];",
            "            }",
            "        }",
            "    }",
            "}",
        ]
        cost = (batch * count).constant or USUAL
        code.loop(f"_{pointer}", number, cost, lines)
        return Rows(side, pointer, packs, slots)

    def _terms(self, made: Sum) -> tuple[Term, Term]:
        """Return the element of each operand of a sum, that with the rows first."""
        first, second = made.sides
        return (second, first) if self._loops.plan.is_turned else (first, second)

    def _in_place(self, term: Term, own: str, along: str) -> Side | None:
        """Return an operand that is the elements of a tensor, evenly apart; None for any other."""
        loops, code = self._loops, self._loops.code
        access = term.detail
        if term.op != "load" or term.operands or not isinstance(access, Access):
            return None
        if access.dtype != loops.dtype or not isinstance(access.operand, int):
            return None
        if any(loops.plan.supplier.terms.found(access.offset)):
            return None
        steps: list[Dim] = []
        rest = access.offset
        for name in ("batch", own, along):
            step = rest.rename({name: Dim.of(name) + 1}) - rest
            if step.names() & {"batch", "m", "n", *loops.along}:
                return None
            steps.append(step)
            rest = rest.rename({name: ZERO})
        if rest.names() & {"batch", "m", "n", *loops.along}:
            return None
        pointer = code.argument(
            Read(access.operand, access.dtype), f"{code.operand_name(access.operand)}_at"
        )
        if rest != ZERO:
            pointer = f"({pointer} + {self._whole(rest)})"
        if own == loops.own[1] and steps[1] == ZERO:
            return None  # its columns are one number
        batch, each, summed = map(self._whole, steps)
        return Side(pointer, batch, each, summed, access.operand)

    def _whole(self, dim: Dim) -> Text:
        return self._loops.code.dims.whole(dim, lambda _: None)

    def _computed(self, term: Term, along: str) -> Side:
        """Write a pass that computes the rows of a sum and stores them; return them."""
        loops, code = self._loops, self._loops.code
        (batch, rows, _), count = loops.shape, loops.count(along)
        pointer = loops.room((batch, rows, count), "rows_at")
        outer, first, inner, each = loops.blocks(along, along, loops.own[0])
        value = each.typed(term, loops.dtype)
        place, index = loops.row, loops.along[along]
        at = f"({loops.batch} * {loops.inner(rows)} + {place}) * {loops.inner(count)} + {index}"
        each.line(f"{code.function('store_part', loops.dtype)}({pointer} + {at}, {value}, n);")
        lines = [
            *outer.lines,
            loop(loops.batch, loops.size(batch)),
            *indented(first.lines),
            f"    OVER ({index}, begin, end, {code.lanes},",
            *indented(indented(inner.lines)),
            f"        {loop(place, loops.size(rows))}",
            *indented(indented(indented(each.lines))),
            "        }",
            "    );",
            "}",
        ]
        cost = (cost_of(code.terms, [term]) + 2) * ((batch * rows).constant or USUAL)
        code.loop(f"_{pointer}", str(loops.size(count)), cost, lines)
        return Side(pointer, loops.size(rows * count), loops.size(count), Text("1"))

    def _packed(self, made: Sum, side: Side | None, rows: Side, *, transposes: bool) -> Columns:
        """Write a pass that computes the columns of a sum and packs them, or with `transposes` its
        rows where a call wants it; return where they are."""
        loops, code = self._loops, self._loops.code
        term = self._terms(made)[1]
        (batch, _, columns), count = loops.shape, loops.count(made.along)
        panels = self._panels(transposes=transposes)
        width = self._tiles.width
        all_panels = (columns + (width - 1)) // width * width
        pointer = loops.packed_room((batch, all_panels, count), "columns_at")
        outer, first, inner, each = loops.blocks(loops.own[1], loops.own[1], made.along)
        value = each.typed(term, loops.dtype)
        place, index = loops.along[made.along], loops.column
        at = f"to + {place} * {width} + ({index} - column)"
        each.line(f"{code.function('store_part', loops.dtype)}({at}, {value}, n);")
        packed = [
            f"OVER ({index}, column, last, {code.lanes},",
            *indented(inner.lines),
            f"    {loop(place, loops.size(count))}",
            *indented(indented(each.lines)),
            "    }",
            ");",
        ]
        if side is not None and side.own.text != "1":
            packed = self._packing(side, width, count)
        if transposes:
            across = self._packing(rows, self._tiles.transposed.width, count)
            packed = either(IS_TRANSPOSED, across, packed)
        number = self._number(side, panels, is_kept=self._keeps, transposes=transposes)
        if self._keeps and side is not None:
            code.kept.append(Kept(loops.scratch - 1, side.operand))
        size = f"{loops.inner(count)} * {panels.wide.inside(7)}"
        to = f"{pointer} + ({loops.batch} * {panels.number.inside(7)} + panel) * {size}"
        needs_all = IS_TRANSPOSED if transposes else "0"
        alone = number if rows.is_across else f"{self._are_many(count)} ? 0 : {number}"
        slots = "" if self._keeps else self._slots("columns", alone, size, needs_all)
        if slots:
            to = f"{slots} ? relay_panel(&relay_own_columns, panel) : {to}"
            number = f"{slots} ? 0 : {number}"
        lines = [
            *outer.lines,
            "for (int64_t panel = begin; panel < end; panel++) {",
            f"    const int64_t column = panel * {panels.wide.inside(7)};",
            "    const int64_t last ="
            f" relay_least_i64(column + {panels.wide.inside(6)}, {panels.total});",
            f"    {loop(loops.batch, loops.size(batch))}",
            f"        {element_of(loops.dtype).c} *to = {to};",
            f"        if (last - column < {panels.wide}) memset(to, 0, {size} * sizeof *to);",
            *indented(indented(first.lines)),
            *indented(indented(packed)),
            "    }",
            "}",
        ]
        cost = (cost_of(code.terms, [term]) + 2) * self._tiles.vectors
        cost *= (batch * count).constant or USUAL
        code.loop(f"_{pointer}", number, cost, lines)
        return Columns(pointer, side, slots)

    def _are_many(self, count: Dim) -> str:
        """Return whether a cache has no room for all rows, as far as they are read for each panel
        where no thread packs it twice."""
        loops = self._loops
        rows = f"{loops.inner(loops.shape[1])} * {loops.inner(count)}"
        return f"{rows} > {_MOST_BYTES // element_of(loops.dtype).bytes}"

    def _panels(self, *, transposes: bool) -> _Panels:
        """Return the panels of columns, or with `transposes` of rows where a call wants it."""
        loops, width = self._loops, self._tiles.width
        columns = loops.shape[2]
        number = loops.size((columns + (width - 1)) // width)
        if not transposes:
            return _Panels(number, Text(str(width)), loops.size(columns))
        total, wide = loops.size(loops.shape[1]), self._tiles.transposed.width
        across = f"({total.inside(5)} + {wide - 1}) / {wide}"
        return _Panels(
            Text(f"({IS_TRANSPOSED} ? {across} : {number})"),
            Text(f"({IS_TRANSPOSED} ? {wide} : {width})"),
            Text(f"({IS_TRANSPOSED} ? {total} : {loops.size(columns)})"),
        )

    def _number(
        self, side: Side | None, panels: _Panels, *, is_kept: bool, transposes: bool
    ) -> str:
        """Return how many panels a call packs."""
        code, number = self._loops.code, str(panels.number)
        if side is not None:
            few = f"{self._loops.size(self._loops.shape[1])} < {fewest_packed(side)}"
            few = f"!{IS_TRANSPOSED} && {few}" if transposes else few
            number = f"{few} ? 0 : {number}"
        if code.route is not None:
            number = f"{BY_LIBRARY} ? 0 : {number}"
        if is_kept and side is not None:
            number = f"{IS_PACKED} ? 0 : {number}"
        return number

    def _slots(self, kind: str, number: str, size: str, needs_all: str) -> str:
        """Return the name of how many panels of columns or rows a thread packs for itself; empty
        where it never does."""
        loops, code = self._loops, self._loops.code
        if len(loops.plan.sums) > 1 or loops.shape[0] != ONE:
            return ""
        room = code.fresh(f"{kind}_room")
        value = f"{size} * {element_of(loops.dtype).bytes}, {needs_all}"
        code.compute("relay_space", room, f"relay_space_for({number}, {value})")
        self.own[kind] = room
        return f"{room}.slots"

    def _packing(self, side: Side, width: int, count: Dim) -> list[str]:
        """Return the lines that pack a panel of what lies along what is summed."""
        loops, code = self._loops, self._loops.code
        index = loops.column
        given = f"{side.at(loops.batch, index)}, {side.own}, to + ({index} - column)"
        given = f"{given}, {width}, {loops.size(count)}, n"
        call = f"{code.function('transpose', loops.dtype)}({given});"
        return [f"OVER ({index}, column, last, {code.lanes}, {call});"]


@final
@dataclass(frozen=True, slots=True)
class _Panels:
    """How many panels there are, how many columns (or rows) each has, and how many all have."""

    number: Text
    wide: Text
    total: Text
