"""Direct convolutions: each output row is a sum of rows of the source times numbers of the kernel.

A `Sweep` is a convolution as the loops that compute it: from an image with zeros around it. The
gradient for the image of a convolution is a sweep, too, over the gradient of its result with the
kernel turned round.
"""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
from ..math import Element, Target
from .frames import Planes, aligned
from .tiles import declared, indented, outer, sums, tile_size, vector_of


@final
@dataclass(frozen=True, slots=True)
class Weights:
    """Where the numbers of a kernel lie: how far apart those of neighbouring groups, results,
    sources, rows and columns are, and where the first one is."""

    group: int
    result: int
    source: int
    row: int
    column: int
    first: int


@final
@dataclass(frozen=True, slots=True)
class Sweep:
    """A convolution as loops: `sources` and `results` are channels of one group."""

    element: Element
    groups: int
    sources: int
    results: int
    frame: Planes
    output: tuple[int, int]
    kernel: tuple[int, int]
    weights: Weights
    has_bias: bool

    @property
    def flops(self) -> int:
        """The products for one image."""
        count = self.groups * self.results * self.sources
        return count * self.kernel[0] * self.kernel[1] * self.output[0] * self.output[1]


def row_block(results: int, most: int) -> int:
    """Return the results of a tile: all tiles are alike if that is possible with large ones."""
    if results <= most:
        return results
    return next((n for n in range(most, most // 2, -1) if results % n == 0), most)


def sweep_text(name: str, sweep: Sweep, target: Target) -> str:
    """Return the C function of a sweep: `name(run, source, weights[, bias], result, count)` for so
    many images."""
    most, _ = tile_size(target)
    block = row_block(sweep.results, most)
    full, rest = divmod(sweep.results, block)
    frames = [] if sweep.frame.is_source else [sweep.frame.text(f"{name}_frame", sweep.element)]
    tiles = [
        _Tile(sweep, rows, target).text(f"{name}_tile_{rows}") for rows in (block, rest) if rows
    ]
    chosen = _tile_call(f"{name}_tile_{block}", sweep)
    if rest:
        last = _tile_call(f"{name}_tile_{rest}", sweep)
        chosen = f"if (row < {full * block}) {chosen}\n        else {last}"
    blocks = full + (rest > 0)
    return "\n".join((*frames, *tiles, _driver(name, sweep, target, blocks, block, chosen)))


def _tile_call(name: str, sweep: Sweep) -> str:
    """Return the call of a tile for the results from `row` on, of one group of an image."""
    weights, area = sweep.weights, sweep.output[0] * sweep.output[1]
    source = f"image + group * {sweep.sources * sweep.frame.plane}"
    moved = f"a.weights + group * {weights.group} + row * {weights.result} + {weights.first}"
    bias = f"a.bias + group * {sweep.results} + row, " if sweep.has_bias else ""
    result = f"a.result + ((n * {sweep.groups} + group) * {sweep.results} + row) * {area}"
    return f"{name}({source}, {moved}, {bias}{result});"


def _driver(name: str, sweep: Sweep, target: Target, blocks: int, block: int, chosen: str) -> str:
    """Return the function that deals out the tiles of all images: `blocks` for each group, of
    `block` results each, by the statement `chosen`."""
    c, frame = sweep.element.c, sweep.frame
    bias, given, taken = "", "", ""
    if sweep.has_bias:
        bias, given, taken = ", *bias", ", bias", f", const {c} *bias"
    channels, plane = sweep.groups * sweep.sources, frame.source[0] * frame.source[1]
    before, after = "", ""
    image = f"const {c} *image = a.source + n * {channels * plane};"
    if not frame.is_source:
        before = aligned("room", c, str(channels * frame.plane))
        before += "    int64_t framed = -1;\n"
        after = "    free(room_at);\n"
        image += f"\n        if (framed != n) {name}_frame(image, room, {channels});"
        image += "\n        framed = n, image = room;"
    tiles = sweep.groups * blocks
    cost = sweep.flops // tiles // (target.register_bytes // sweep.element.bytes)
    return f"""\
struct {name} {{
    const {c} *source, *weights{bias};
    {c} *result;
}};

static void {name}_part(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
{before}    for (int64_t at = begin; at < end; at++) {{
        int64_t n = at / {tiles}, group = at % {tiles} / {blocks};
        int64_t row = at % {blocks} * {block};
        {image}
        {chosen}
    }}
{after}}}

static void {name}(
    relay_run *run, const {c} *source, const {c} *weights{taken},
    {c} *result, int64_t count
) {{
    const struct {name} given = {{source, weights{given}, result}};
    relay_in_parts(run, {name}_part, &given, count * {tiles}, {cost});
}}
"""


@final
class _Tile:
    """The function that computes some channels of one result image, a few vectors at a time.

    Rows and columns that are left over are computed once more with some of those before them, so
    that all vectors are whole, unless a row is shorter than one.
    """

    def __init__(self, sweep: Sweep, rows: int, target: Target) -> None:
        height, width = sweep.frame.grid(sweep.output)
        self._sweep: Final = sweep
        self._rows: Final = rows
        self._vector: Final = vector_of(sweep.element, (height, width), target)
        lanes = self._vector.lanes // self._vector.rows
        self._count: Final = None if self._vector.rows > 1 else min(width, lanes)
        most = tile_size(target)[1]
        across = min(-(-width // lanes), most)
        self._step: Final = across * lanes
        high = self._vector.rows
        self._down: Final = max(1, min(most // across, height // high)) * high
        columns = [j * lanes for j in range(across)]
        if self._is_whole:
            columns = [min(x, max(width - lanes, 0)) for x in columns]
        self._places: Final = [(y, x) for y in range(0, self._down, high) for x in columns]

    @property
    def _is_whole(self) -> bool:
        """Whether the vectors of a tile cover whole rows."""
        return self._step >= self._sweep.frame.grid(self._sweep.output)[1]

    def _products(self) -> list[str]:
        """Return the lines for one row of the kernel over one source."""
        sweep, frame, weights = self._sweep, self._sweep.frame, self._sweep.weights
        lines: list[str] = []
        for kx in range(sweep.kernel[1]):

            def number(row: int, kx: int = kx) -> str:
                return f"w[{row * weights.result + kx * weights.column}]"

            def vector(place: int, kx: int = kx) -> str:
                y, x = self._places[place]
                at = y * frame.step + frame.at(x, kx)
                return self._vector.load(f"p + {at}", frame.step, self._count)

            inner = outer(self._vector.shape, self._rows, len(self._places), number, vector)
            lines += ["{", *(f"    {line}" for line in inner), "}"]
        return lines

    def _stores(self) -> list[str]:
        height, width = self._sweep.frame.grid(self._sweep.output)
        lines: list[str] = []
        for i in range(self._rows):
            for j, (y, x) in enumerate(self._places):
                value = f"c{i}_{j} + bias[{i}]" if self._sweep.has_bias else f"c{i}_{j}"
                where = f"to + {i * height * width + y * width + x}"
                lines.append(self._vector.store(where, value, width, self._count))
        return lines

    def text(self, name: str) -> str:
        """Return the function `name(source, weights[, bias], result)`."""
        sweep, frame, weights = self._sweep, self._sweep.frame, self._sweep.weights
        (height, width), c = frame.grid(sweep.output), sweep.element.c
        names = sums(self._rows, len(self._places))
        bias = f", const {c} *bias" if sweep.has_bias else ""
        loop = "int64_t x = 0;"
        if not self._is_whole:
            last = width - self._step
            loop = f"for (int64_t at_x = 0, x; at_x < {width}; at_x += {self._step})"
            loop += f" if (x = at_x < {last} ? at_x : {last}, 1)"
        last = height - self._down
        return f"""\
static void {name}(const {c} *source, const {c} *weights{bias}, {c} *result) {{
    for (int64_t at_y = 0; at_y < {height}; at_y += {self._down}) {{
        int64_t y = at_y < {last} ? at_y : {last};
        {loop} {{
            {declared(self._vector.shape, names)}
            for (int64_t channel = 0; channel < {sweep.sources}; channel++)
                for (int64_t ky = 0; ky < {sweep.kernel[0]}; ky++) {{
                    const {c} *p = source + channel * {frame.plane}
                        + {frame.row("y", "ky")} + x;
                    const {c} *w = weights + channel * {weights.source} + ky * {weights.row};
{indented(self._products(), 5)}
                }}
            {c} *to = result + y * {width} + x;
{indented(self._stores(), 3)}
        }}
    }}
}}
"""
