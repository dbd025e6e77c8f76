"""How the source of a convolution lies in memory while it is summed.

A `Frame` is the image with zeros around it: a kernel meets rows of it. `Sheets` are a copy of it
for each column of the kernel, which has what that column meets at each place of the result: the
places of all rows lie one behind the other, so that vectors are whole although rows are short.
"""

from __future__ import annotations

from math import gcd
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ..math import Element, Target
from .tiles import indented, load, store, vector_of

Pair: TypeAlias = tuple[int, int]


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """An image with zeros: `low` before its first row and column, and behind it what is missing to
    `size`. Columns that the stride is apart lie side by side."""

    source: Pair
    low: Pair
    size: Pair
    stride: Pair
    dilation: Pair

    @property
    def is_source(self) -> bool:
        """Whether the source itself can be read."""
        return self.size == self.source and self.phases == 1

    @property
    def phases(self) -> int:
        """The number of columns of which the first ones lie before the second ones."""
        return self.stride[1]

    @property
    def columns(self) -> int:
        """The elements of each phase of a row."""
        return -(-self.size[1] // self.phases)

    @property
    def pitch(self) -> int:
        """The elements from one row to the next."""
        return self.columns * self.phases

    @property
    def step(self) -> int:
        """The elements from what one row of the result meets to what the next one meets."""
        return self.stride[0] * self.pitch

    @property
    def plane(self) -> int:
        """The elements of one image."""
        return self.size[0] * self.pitch

    def grid(self, output: Pair) -> Pair:
        """Return the rows of places of a result, and the places of each."""
        return output

    def row(self, y: str, ky: str) -> str:
        """Return where the row begins that a row of the kernel meets for a row of the result."""
        return f"{y} * {self.step} + {ky} * {self.dilation[0] * self.pitch}"

    def at(self, column: int, kx: int) -> int:
        """Return where in its row the column lies that a column of the kernel meets for one of the
        result."""
        offset = kx * self.dilation[1]
        return offset % self.phases * self.columns + column + offset // self.phases

    def text(self, name: str, element: Element) -> str:
        """Return the function that makes the frame of some images."""
        (height, width), c = self.source, element.c
        taken = [(p - self.low[1]) % self.phases for p in range(self.phases)]
        lines = [
            f"memset(to, 0, count * {self.plane} * sizeof({c}));",
            f"for (; count > 0; count--, to += {self.plane})",
            f"    for (int64_t y = 0; y < {height}; y++, from += {width}) {{",
            f"        {c} *line = to + (y + {self.low[0]}) * {self.pitch};",
            *(
                f"        for (int64_t x = 0; x < {-(-(width - first) // self.phases)}; x++)"
                f" line[{self._placed(first)} + x] = from[x * {self.phases} + {first}];"
                for first in taken
            ),
            "    }",
        ]
        given = f"const {c} *restrict from, {c} *restrict to, int64_t count"
        return f"static void {name}({given}) {{\n{indented(lines, 1)}\n}}\n"

    def _placed(self, column: int) -> int:
        """Return where a column of the image lies in its row."""
        found = column + self.low[1]
        return found % self.phases * self.columns + found // self.phases


@final
@dataclass(frozen=True, slots=True)
class Sheets:
    """An image with `low` zeros before its first row and column, as a sheet for each column of a
    kernel. If it is `aligned`, there is one for each of its first rows, too, until places are whole
    vectors of `lanes` apart again, so that vectors begin where lines of memory do: that is faster,
    where the sheets stay in the first-level cache."""

    source: Pair
    low: Pair
    output: Pair
    kernel: Pair
    stride: Pair
    dilation: Pair
    lanes: int
    aligned: bool

    @property
    def is_source(self) -> bool:
        """Whether the source itself can be read."""
        is_one = self.kernel[1] == 1 and self.stride == (1, 1) and self.low == (0, 0)
        rows = self.output[0] + (self.kernel[0] - 1) * self.dilation[0]
        return is_one and (rows, self.output[1]) == self.source

    @property
    def _period(self) -> int:
        """The sheets of a column."""
        if self.stride[0] > 1:
            return self.kernel[0]
        if self.is_source or not self.aligned:
            return 1
        apart = self.dilation[0] * self.output[1]
        return min(self.kernel[0], self.lanes // gcd(apart, self.lanes))

    def _rows(self, ky: int) -> int:
        """Return the rows of the sheet of one of the first rows of a kernel."""
        behind = (self.kernel[0] - 1 - ky) // self._period * self._period
        return self.output[0] + behind * self.dilation[0]

    @property
    def _sheet(self) -> int:
        """The elements of a sheet."""
        size = self._rows(0) * self.output[1]
        return size if self.is_source else -(-size // self.lanes) * self.lanes

    @property
    def step(self) -> int:
        """The elements from one row of places to the next: there is only one."""
        return 0

    @property
    def plane(self) -> int:
        """The elements of the sheets of one image."""
        return self.kernel[1] * self._period * self._sheet

    def grid(self, output: Pair) -> Pair:
        """Return the rows of places of a result, and the places of each."""
        return 1, output[0] * output[1]

    def row(self, y: str, ky: str) -> str:
        """Return where the places begin that a row of the kernel meets."""
        del y
        apart = self._period * self.dilation[0] * self.output[1]
        return f"{ky} % {self._period} * {self._sheet} + {ky} / {self._period} * {apart}"

    def at(self, column: int, kx: int) -> int:
        """Return how far behind the begin of its row a place lies in the sheets of a column."""
        return kx * self._period * self._sheet + column

    def text(self, name: str, element: Element) -> str:
        """Return the function that makes the sheets of some images."""
        (height, width), c, step = self.source, element.c, self.stride[0]
        met = [self._met(1, kx, self.output[1]) for kx in range(self.kernel[1])]
        rows = [self._met(0, ky, self._rows(ky)) for ky in range(self._period)]
        is_whole = all(m == (0, self.output[1]) for m in met)
        is_whole &= all(m == (0, self._rows(ky)) for ky, m in enumerate(rows))
        lines = [] if is_whole else [f"memset(to, 0, count * {self.plane} * sizeof({c}));"]
        lines.append(f"for (; count > 0; count--, from += {height * width}, to += {self.plane}) {{")
        for ky, (first, end) in enumerate(rows):
            lines += [
                f"    for (int64_t r = {first}; r < {end}; r++) {{",
                f"        const {c} *row = from + (r * {step} + {self._first(0, ky)}) * {width};",
                f"        {c} *line = to + {ky * self._sheet} + r * {self.output[1]};",
                *(f"        {x}" for kx, m in enumerate(met) for x in self._copy(kx, m, element)),
                "    }",
            ]
        given = f"const {c} *restrict from, {c} *restrict to, int64_t count"
        return f"static void {name}({given}) {{\n{indented([*lines, '}'], 1)}\n}}\n"

    def _copy(self, kx: int, met: Pair, element: Element) -> list[str]:
        """Return the lines that copy what a column of the kernel meets at some places of a row."""
        (begin, end), step = met, self.stride[1]
        to, first = self.at(0, kx), self._first(1, kx)
        if step > 1:
            loop = f"for (int64_t x = {begin}; x < {end}; x++)"
            return [f"{loop} line[{to} + x] = row[x * {step} + {first}];"]
        lines: list[str] = []
        for x in range(begin, end, self.lanes):
            count = min(self.lanes, end - x)
            is_half = 2 * count <= self.lanes and self.lanes * element.bytes > _LEAST_BYTES
            lanes = self.lanes // 2 if is_half else self.lanes
            shape = f"{element.name}x{lanes}"
            loaded = load(shape, f"row + {x + first}", lanes, count)
            lines.append(store(shape, f"line + {to + x}", loaded, lanes, count))
        return lines

    def _first(self, axis: int, number: int) -> int:
        """Return which row or column of the image one of the kernel meets for the first place."""
        return number * self.dilation[axis] - self.low[axis]

    def _met(self, axis: int, number: int, count: int) -> Pair:
        """Return the first of so many rows or places for which a row or column of the kernel meets
        the image, and the one behind the last."""
        first, stride = self._first(axis, number), self.stride[axis]
        begin = min(max(0, -(first // stride)), count)
        return begin, max(begin, min(count, -(-(self.source[axis] - first) // stride)))


_LEAST_BYTES: Final = 16
"""No vector is smaller."""

Planes: TypeAlias = Frame | Sheets


def planes_of(
    frame: Frame, sheets: Sheets, results: int, element: Element, target: Target
) -> Planes:
    """Return the way for a source to lie in which products with it take least: those of as many
    results share a copy."""
    most = target.register_bytes // element.bytes
    area = sheets.output[0] * sheets.output[1]
    copied = sheets.plane / (area * results * sheets.kernel[0] * sheets.kernel[1])
    whole = -(-area // most) * most / area
    by_sheets = whole + (0 if sheets.is_source else _COPY * copied)
    return sheets if by_sheets < _LEAST_GAIN * _by_row(sheets.output, element, target) else frame


_COPY: Final = 6.0
"""How much longer it takes to copy an element than to multiply it."""

_TOGETHER: Final = 1.2
"""How much longer vectors of several rows take: they are put together."""

_LEAST_GAIN: Final = 0.95


def _by_row(output: Pair, element: Element, target: Target) -> float:
    """Return how many places there are in the vectors of a result, row by row, for each place."""
    vector = vector_of(element, output, target)
    most = target.register_bytes // element.bytes
    if vector.rows > 1:
        return _TOGETHER
    return -(-output[1] // vector.lanes) * most / output[1]


def aligned(name: str, c: str, count: str) -> str:
    """Return the lines that find room for so many elements, from the begin of a line of memory on;
    what is freed is called `name_at`."""
    return f"""\
    {c} *{name}_at = malloc({count} * sizeof({c}) + 64);
    {c} *{name} = ({c} *)(((uintptr_t){name}_at + 63) / 64 * 64);
"""
