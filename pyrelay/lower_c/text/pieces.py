"""Sums of products in pieces, for a few rows.

The product of a row and a large matrix, as in the gradient of a layer for one example, reads the
matrix once, and takes as long as that takes. Threads that divide its columns read rows of the
matrix that another thread has written, as updates of weights divide rows. So what is summed is
divided instead: each piece is read as the rows that it is, and the sums of the pieces are added
when something is made of them. The number of pieces does not depend on the threads.
"""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...kernels.plans.contraction import Sum
from ..math import element_of
from .emit import BY_LIBRARY
from .product_loops import ProductLoops
from .sides import Side
from .tiles import Tiles

PIECES: Final = 2
_MOST_ROWS: Final = 64
_TIMES: Final = 8
_LEAST: Final = 64
"""The rows and what is summed with which pieces are worth it: what is summed is so many times as
long as there are rows, so that the sums of pieces are small beside the matrix."""

_LARGE: Final = 1 << 16
"""A matrix of fewer elements is read by any thread as fast."""


@final
@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one sum: where their sums are stored, if a call computes it so."""

    room: str
    condition: str


def in_pieces(
    loops: ProductLoops, tiles: Tiles, made: Sum, rows: Side, columns: Side | None
) -> Pieces | None:
    """Return where the pieces of a sum are stored; write the pass that computes them. None where
    no call computes it so."""
    code, count = loops.code, loops.count(made.along)
    (batch, row_count, column_count), width = loops.shape, tiles.width
    if columns is None or columns.kind != "edge" or not _may_be_large(row_count, count):
        return None
    m, n, k = map(loops.size, (row_count, column_count, count))
    worth = f"{m} <= {_MOST_ROWS} && {k} >= {_LEAST} && {k} >= {_TIMES} * {m.inside(7)}"
    worth = f"{worth} && {k.inside(6)} * {n.inside(6)} >= {_LARGE}"
    condition = code.fresh("in_pieces")
    code.compute("int", condition, worth if code.route is None else f"!{BY_LIBRARY} && {worth}")
    panels = (column_count + (width - 1)) // width
    high = -(-_MOST_ROWS // tiles.rows) * tiles.rows
    room = loops.packed_room((Dim.of(PIECES), batch, panels, Dim.of(high * width)), "pieces_at")
    batches, c = loops.inner(batch), element_of(loops.dtype).c
    tile = f"{code.function_name}_tile"
    given = f"p, {rows.own}, {rows.along}, q, {columns.along}, count, sums, rows, columns"
    lines = [
        f"const int64_t tiles_n = {loops.size(panels)};",
        "for (int64_t tile = begin; tile < end; tile++) {",
        f"    const int64_t u = tile / (tiles_n * {batches});",
        f"    const int64_t {loops.batch} = tile / tiles_n % {batches};",
        f"    const int64_t panel = tile % tiles_n, column = panel * {width};",
        f"    const int64_t columns = relay_least_i64({n} - column, {width});",
        f"    const int64_t from = {k.inside(7)} * u / {PIECES};",
        f"    const int64_t count = {k.inside(7)} * (u + 1) / {PIECES} - from;",
        f"    const {c} *q = {columns.at(loops.batch, 'column')} + from * "
        f"{columns.along.inside(7)};",
        f"    for (int64_t first = 0; first < {m}; first += {tiles.rows}) {{",
        f"        const int64_t rows = relay_least_i64({m} - first, {tiles.rows});",
        f"        const {c} *p = {rows.at(loops.batch, 'first')} + from * {rows.along.inside(7)};",
        f"        {c} *sums = {_place(room, loops, tiles, 'u')};",
        f"        if (rows == 1) {tile}_edge_1({given});",
        f"        else if (columns == {width}) {tile}({given});",
        f"        else {tile}_edge({given});",
        "    }",
        "}",
    ]
    number = f"{condition} ? {PIECES} * {batches} * {loops.inner(panels)} : 0"
    cost = f"{k.inside(7)} * {m.inside(7)} * {tiles.vectors}"
    code.loop(f"_{room}", number, cost, lines)
    return Pieces(room, condition)


def added(loops: ProductLoops, tiles: Tiles, pieces: Pieces, name: str) -> list[str]:
    """Return the lines that store the sums of a tile, from those of the pieces, under a name."""
    code, dtype = loops.code, loops.dtype
    load, store = code.function("load", dtype), code.function("store", dtype)
    c = element_of(dtype).c
    total = " + ".join(f"{load}(part_{u} + c)" for u in range(PIECES))
    return [
        *(
            f"const {c} *part_{u} = {_place(pieces.room, loops, tiles, str(u))};"
            for u in range(PIECES)
        ),
        f"for (int64_t c = 0; c < rows * {tiles.width}; c += {code.lanes})",
        f"    {store}({name} + c, {total});",
    ]


def _place(room: str, loops: ProductLoops, tiles: Tiles, piece: str) -> str:
    """Return where a piece has the sums of the tile at `panel` and `first`."""
    high = -(-_MOST_ROWS // tiles.rows) * tiles.rows
    panel = f"({piece} * {loops.inner(loops.shape[0])} + {loops.batch}) * tiles_n + panel"
    return f"{room} + (({panel}) * {high} + first) * {tiles.width}"


def _may_be_large(rows: Dim, count: Dim) -> bool:
    """Return whether a call may have few enough rows, and sum enough."""
    is_few = rows.constant is None or rows.constant <= _MOST_ROWS
    return is_few and (count.constant is None or count.constant >= _LEAST)
