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
from .loops import indented
from .product_loops import ProductLoops
from .sides import Side
from .tiles import Tiles

PIECES: Final = 4
_MOST_ROWS: Final = 4
_LEAST: Final = 64
"""The rows and what is summed with which pieces are worth it."""

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
    worth = f"{m} <= {_MOST_ROWS} && {k} >= {_LEAST} && {k.inside(6)} * {n.inside(6)} >= {_LARGE}"
    condition = code.fresh("in_pieces")
    code.compute("int", condition, worth if code.route is None else f"!{BY_LIBRARY} && {worth}")
    room = loops.room((Dim.of(PIECES), batch, Dim.of(_MOST_ROWS), column_count), "pieces_at")
    batches, c = loops.inner(batch), element_of(loops.dtype).c
    tile = f"{code.function_name}_tile"
    given = f"p, {rows.own}, {rows.along}, q, {columns.along}, count, sums, rows, columns"
    lines = [
        f"{c} sums[{tiles.rows * width}];",
        f"const int64_t tiles_n = ({n} + {width - 1}) / {width}, rows = {m};",
        "for (int64_t tile = begin; tile < end; tile++) {",
        f"    const int64_t u = tile / (tiles_n * {batches});",
        f"    const int64_t {loops.batch} = tile / tiles_n % {batches};",
        f"    const int64_t column = tile % tiles_n * {width};",
        f"    const int64_t columns = relay_least_i64({n} - column, {width});",
        f"    const int64_t from = {k.inside(7)} * u / {PIECES};",
        f"    const int64_t count = {k.inside(7)} * (u + 1) / {PIECES} - from;",
        f"    const {c} *p = {rows.at(loops.batch, '0')} + from * {rows.along.inside(7)};",
        f"    const {c} *q = {columns.at(loops.batch, 'column')} + from * "
        f"{columns.along.inside(7)};",
        f"    if (rows == 1) {tile}_edge_1({given});",
        f"    else if (columns == {width}) {tile}({given});",
        f"    else {tile}_edge({given});",
        "    for (int64_t row = 0; row < rows; row++) {",
        f"        {c} *to = {_place(room, loops, 'u', 'column')};",
        f"        memcpy(to, sums + row * {width}, columns * sizeof *to);",
        "    }",
        "}",
    ]
    number = f"{condition} ? {PIECES} * {batches} * (({n} + {width - 1}) / {width}) : 0"
    cost = f"{k.inside(7)} * {tiles.vectors}"  # what is read takes longer than what is added
    code.loop(f"_{room}", number, cost, lines)
    return Pieces(room, condition)


def added(loops: ProductLoops, tiles: Tiles, pieces: Pieces, name: str) -> list[str]:
    """Return the lines that store the sums of a tile, from those of the pieces, under a name."""
    code, dtype = loops.code, loops.dtype
    load, store = code.function("load_part", dtype), code.function("store_part", dtype)
    step = f"{loops.inner(loops.shape[0])} * {_MOST_ROWS} * {loops.inner(loops.shape[2])}"
    lines = [
        f"const {element_of(dtype).c} *from = {_place(pieces.room, loops, '0', 'column + c')};",
        f"{code.vector(dtype)} total = {load}(from, n);",
        f"for (int u = 1; u < {PIECES}; u++) total = total + {load}(from + u * {step}, n);",
        f"{store}({name} + row * {tiles.width} + c, total, n);",
    ]
    return [
        "for (int64_t row = 0; row < rows; row++) {",
        f"    OVER (c, 0, columns, {code.lanes},",
        *indented(indented(lines)),
        "    );",
        "}",
    ]


def _place(room: str, loops: ProductLoops, piece: str, column: str) -> str:
    """Return where the sum of a piece is, for `row` and a column."""
    batches, columns = loops.inner(loops.shape[0]), loops.inner(loops.shape[2])
    row = f"({piece} * {batches} + {loops.batch}) * {_MOST_ROWS} + row"
    return f"{room} + ({row}) * {columns} + {column}"


def _may_be_large(rows: Dim, count: Dim) -> bool:
    """Return whether a call may have few enough rows, and sum enough."""
    is_few = rows.constant is None or rows.constant <= _MOST_ROWS
    return is_few and (count.constant is None or count.constant >= _LEAST)
