"""The functions of tiles: sums of products that stay in registers, and the packing of columns.

    tile(p, row_step, step, q, column_step, count, sums, rows, columns)

adds up `count` products for each of some rows, which begin at `p`, and columns, which begin at `q`.
The sums are stored row by row, each row as wide as a whole tile.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, final

from ...dataclass import dataclass
from ...ir.types import DType, is_float
from ...kernels.plans.text import Text
from ..math import Target, element_of
from ..products.tiles import registers
from .emit import KernelText
from .loops import indented
from .sides import Columns, Rows, fewest_packed
from .transposed import COLUMNS, Transposed

PANELS: Final = 8
"""So many panels of rows are packed side by side, from elements that lie one behind the other."""

FEWER: Final = 4
"""The rows of a tile where less are left."""

_AT_ONCE: Final = 4
"""The columns that are summed at once where they lie along what is summed."""


_SHAPES: Final = {32: ((6, 4), (8, 3), (8, 2), (10, 1)), 16: ((6, 2), (8, 1))}
"""Rows and vectors of tiles by the number of registers, which keep the sums, a row of one operand
and a number of the other."""


def tile_shape(target: Target, lanes: int, columns: int | None) -> tuple[int, int]:
    """Return the rows and vectors of a tile, such that few lanes have no column where the number
    of columns is known, and that it multiplies more often than it loads."""
    shapes = _SHAPES[registers(target)]
    if not columns:
        return shapes[0]

    def cost(shape: tuple[int, int]) -> float:
        rows, vectors = shape
        return -(-columns // (vectors * lanes)) * max(vectors, 1 + vectors / rows)

    return min(shapes, key=cost)


@final
@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a kernel: each has `vectors` vectors of a dtype in a row."""

    code: KernelText
    dtype: DType
    rows: int
    vectors: int
    transposed: Transposed

    @property
    def width(self) -> int:
        """The columns of a tile."""
        return self.vectors * self.code.lanes

    def sums(
        self, name: str, rows: Rows, second: Columns, count: Text, total: Text, batch: str
    ) -> list[str]:
        """Return the lines that store the sums of `count` products of a tile under a name, of
        which `total` rows there are in all."""
        element, width = element_of(self.dtype).c, self.width
        function, size = self.code.function_name, f"{count.inside(7)} * {width}"
        q = second.panel(function, "panel", size, batch, "tiles_n")
        tile = f"{function}_tile"
        first, from_p = rows.side, rows.side.at(batch, "first")
        steps = f"{first.own}, {first.along}"
        if rows.packs:
            place = f"({batch} * tiles_m + first / {self.rows}) * {count.inside(7)} * {self.rows}"
            last = f"relay_least_i64(tile.end, tile.row + {PANELS})"
            panel = rows.panel(function, f"{rows.packed} + {place}", last)
            from_p = f"!{rows.packs} ? {from_p} : {panel}"
            steps = f"1, {rows.packs} ? {self.rows} : {first.along}"
        given = f"p, {steps}, q, {width}, {count}, {name}"
        packed = [
            f"if (rows == 1) {tile}_1({given}, rows, columns);",
            f"else if (rows <= {FEWER}) {tile}_{FEWER}({given}, rows, columns);",
            f"else {tile}({given}, rows, columns);",
        ]
        head = f"const {element} *p = {from_p};"
        if second.side is None:
            return ["{", f"    {head}", f"    const {element} *q = {q};", *indented(packed), "}"]
        side, kind = second.side, second.side.kind
        step = side.own if kind == "turned" else side.along
        given = f"p, {steps}, {side.at(batch, 'column')}, {step}, {count}"
        unpacked = [f"{tile}_{kind}({given}, {name}, rows, columns);"]
        if kind == "edge":
            unpacked = [
                f"if (rows == 1) {tile}_edge_1({given}, {name}, rows, columns);",
                f"else if (columns == {width}) {tile}({given}, {name}, rows, columns);",
                f"else {unpacked[0]}",
            ]
        return [
            "{",
            f"    {head}",
            f"    if ({total} < {fewest_packed(side)}) {{",
            *indented(indented(unpacked)),
            "    } else {",
            f"        const {element} *q = {q};",
            *indented(indented(packed)),
            "    }",
            "}",
        ]

    def transposed_sums(self, name: str, second: Columns, count: Text, batch: str) -> list[str]:
        """Return the lines that store the sums of a tile of the transposed result under a name."""
        code, shape, side = self.code, self.transposed, second.side
        assert side is not None
        element, function = element_of(self.dtype).c, code.function_name
        width, across = shape.width, f"{name}_across"
        size = f"{count.inside(7)} * {width}"
        panel = second.panel(function, f"first / {width}", size, batch, "tiles_m")
        given = f"{side.at(batch, 'column')} + c * {side.own.inside(7)}, {side.own}, {side.along}"
        given = f"{given}, q, {width}, {count}, {across} + c * {width}"
        given = f"{given}, relay_least_i64(columns - c, {shape.columns}), {width}"
        back = f"{across} + c * {width}, {width}, {name} + c, {COLUMNS}, rows, {code.lanes}"
        return [
            "{",
            f"    const {element} *q = {panel};",
            f"    {element} {across}[{shape.most_columns * width}];",
            f"    for (int64_t c = 0; c < columns; c += {shape.columns})",
            f"        {function}_tile_across({given});",
            f"    for (int64_t c = 0; c < columns; c += {code.lanes})",
            f"        {code.function('transpose', self.dtype)}({back});",
            "}",
        ]

    def functions(self, kinds: Collection[str], *, transposes: bool) -> str:
        """Return the functions; `kinds` are those for columns that are not packed."""
        found = [self.whole("", self.rows)]
        found += [self.whole(f"_{n}", n) for n in (FEWER, 1)]
        if "edge" in kinds:
            found.append(self.whole("_edge", self.rows, is_edge=True))
            found.append(self.whole("_edge_1", 1, is_edge=True))
        if "turned" in kinds:
            found.append(self.turned())
        if transposes:
            shape = self.transposed
            found.append(replace(self, vectors=shape.vectors).whole("_across", shape.columns))
        return "\n".join(found)

    def whole(self, suffix: str, rows: int, *, is_edge: bool = False) -> str:
        """Return the function for so many rows, or fewer, which are then computed again. Columns
        lie one behind the other; at an edge there may be fewer than vectors have lanes."""
        code, c = self.code, element_of(self.dtype).c
        vector, lanes, vectors = code.vector(self.dtype), code.lanes, self.vectors

        def function(op: str) -> str:
            return code.function(op, self.dtype)

        names = [f"c{i}_{j}" for i in range(rows) for j in range(vectors)]
        lines = [f"{vector} {', '.join(f'{n} = {{0}}' for n in names)};"]
        lines += [
            f"const {c} *p{i} = p + (rows > {i} ? {i} : rows - 1) * row_step;" for i in range(rows)
        ]
        if is_edge:
            lines += [
                f"const int64_t n{j} = columns > {j * lanes} ? columns - {j * lanes} : 0;"
                for j in range(vectors)
            ]
        lines.append("for (int64_t k = 0; k < count; k++) {")
        for j in range(vectors):
            at = f"q + {j * lanes}"
            load = f"{function('load')}({at})"
            if is_edge:
                load = f"{function('load_part')}({at}, n{j} < {lanes} ? n{j} : {lanes})"
            lines.append(f"    {vector} b{j} = {load};")
        for i in range(rows):
            lines.append(f"    {vector} a{i} = {function('splat')}(p{i}[k * step]);")
            for j in range(vectors):
                added = f"c{i}_{j} + a{i} * b{j}"
                if is_float(self.dtype):
                    added = f"{function('mad')}(a{i}, b{j}, c{i}_{j})"
                lines.append(f"    c{i}_{j} = {added};")
        lines += ["    q += column_step;", "}"]
        width = vectors * lanes
        lines += [
            f"{function('store')}(sums + {i * width + j * lanes}, c{i}_{j});"
            for i in range(rows)
            for j in range(vectors)
        ]
        return self._function(suffix, lines)

    def turned(self) -> str:
        """Return the function for few rows, whose columns lie along what is summed: each sum is one
        of vectors, four columns at a time."""
        code, c, lanes = self.code, element_of(self.dtype).c, self.code.lanes
        vector = code.vector(self.dtype)
        load, total = (code.function(f, self.dtype) for f in ("load_part", "sum"))

        def product(j: int) -> str:
            right = f"{load}(q{j} + k, n)"
            if is_float(self.dtype):
                return f"{code.function('mad', self.dtype)}(a, {right}, c{j})"
            return f"c{j} + a * {right}"

        lines = [
            "const int64_t last = columns - 1;",
            f"for (int64_t column = 0; column < columns; column += {_AT_ONCE}) {{",
            *(
                f"    const {c} *q{j} = q + relay_least_i64(column + {j}, last) * column_step;"
                for j in range(_AT_ONCE)
            ),
            "    for (int64_t row = 0; row < rows; row++) {",
            f"        {vector} {', '.join(f'c{j} = {{0}}' for j in range(_AT_ONCE))};",
            "        const " + c + " *from = p + row * row_step;",
            f"        OVER (k, 0, count, {lanes},",
            f"            {vector} a = {load}(from + k, n);",
            *(f"            c{j} = {product(j)};" for j in range(_AT_ONCE)),
            "        );",
            *(
                f"        if (column + {j} < columns) "
                f"sums[row * {self.vectors * lanes} + column + {j}] = {total}(c{j});"
                for j in range(_AT_ONCE)
            ),
            "    }",
            "}",
        ]
        return self._function("_turned", lines)

    def _function(self, suffix: str, lines: Sequence[str]) -> str:
        """Return the function of a tile. Inlined it would lose registers to constants of what is
        made of the sums."""
        c = element_of(self.dtype).c
        return "\n".join(
            (
                f"static __attribute__((noinline)) void {self.code.function_name}_tile{suffix}(",
                f"    const {c} *p, int64_t row_step, int64_t step, const {c} *q,",
                f"    int64_t column_step, int64_t count, {c} *sums, int64_t rows, int64_t columns",
                ") {",
                *indented(lines),
                "}",
                "",
            )
        )
