"""The gradients of a convolution for its weight and its bias.

A number of the weight's gradient is a sum over all images and places of the gradient of the result
times the source moved by its place in the kernel: rows times rows. As many images as stay in cache
are passed over for all numbers, then the next ones; of these as few as stay in the first-level
cache for all rows of the kernel, whose sums are kept beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from ..math import Element, Target
from .frames import Planes, aligned
from .tiles import dot, dot_size, indented, load, vector_of


@final
@dataclass(frozen=True, slots=True)
class WeightGradient:
    """The gradient for a weight as loops: `sources` and `results` are channels of one group."""

    element: Element
    groups: int
    sources: int
    results: int
    planes: Planes
    output: tuple[int, int]
    kernel: tuple[int, int]

    @property
    def area(self) -> int:
        """The places of one result."""
        return self.output[0] * self.output[1]


def weight_gradient_text(name: str, of: WeightGradient, target: Target) -> str:
    """Return the C function `name(run, gradient, source, result, count)` for so many images."""
    c = of.element.c
    block = _block(of, target)
    full, rest = divmod(of.results, block)
    blocks, channels = full + (rest > 0), of.groups * of.sources
    images, near = _kept(of)
    turns = of.kernel[0] if blocks * min(near, channels) < _FEW else 1
    high = of.kernel[0] // turns
    tiles = [_tile(f"{name}_{n}", of, n, high, target) for n in (block, rest) if n]
    chosen = _tile_call(f"{name}_{block}", of)
    if rest:
        last = _tile_call(f"{name}_{rest}", of)
        chosen = f"if (row < {full * block}) {chosen}\n        else {last}"
    functions, room, made, freed = _room(name, of)
    lanes = target.register_bytes // of.element.bytes
    joined = "\n".join(tiles)
    cost = f"(given.count * {of.area // lanes + 1} + 8) * {block * high * of.kernel[1]}"
    return f"""\
struct {name} {{
    const {c} *gradient, *source;
    {c} *result, *room;
    int64_t first, count, channel, channels;
}};

{functions}{joined}
static void {name}_part(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
    for (int64_t at = begin; at < end; at++) {{
        int64_t ky = at % {turns} * {high}, row = at / {turns} % {blocks} * {block};
        int64_t own = at / {turns * blocks}, channel = a.channel + own;
        int64_t group = channel / {of.sources};
        {chosen}
    }}
}}

static void {name}(
    relay_run *run, const {c} *gradient, const {c} *source, {c} *result, int64_t count
) {{
    struct {name} given = {{gradient, source, result, 0, 0, 0, 0, 0}};
    int64_t passes = (count + {images - 1}) / {images};
    int64_t images = passes < 2 ? count : (count + passes - 1) / passes;
{room}    do {{
        given.count = relay_least_i64(images, count - given.first);
        for (given.channel = 0; given.channel < {channels}; given.channel += {near}) {{
            given.channels = relay_least_i64({near}, {channels} - given.channel);
{made}            int64_t items = given.channels * {blocks * turns};
            relay_in_parts(run, {name}_part, &given, items, {cost});
        }}
        given.first += images;
    }} while (given.first < count);
{freed}}}
"""


_FEW: Final = 32
"""Fewer tiles than this do not make equal work for threads, so rows of the kernel are dealt out."""

_KEPT: Final = 1 << 19
"""The bytes of gradients, and those of sources, that are passed over again and again: they stay in
the second-level cache."""

_NEAR: Final = 24 << 10
"""The bytes of images that are passed over for one row of the kernel after another."""


def _block(of: WeightGradient, target: Target) -> int:
    """Return the results of a tile: those with which products, and about a third of the loads, take
    least."""
    most, columns = dot_size(target, of.kernel[1])

    def cost(rows: int) -> float:
        full, rest = divmod(of.results, rows)
        return full * tile(rows) + (tile(rest) if rest else 0)

    def tile(rows: int) -> float:
        return rows * columns / 2 + (rows + 2 * columns) / 3

    return min(range(min(most, of.results), 0, -1), key=cost)


def _kept(of: WeightGradient) -> tuple[int, int]:
    """Return how many images, and how many of their channels, are passed over at once."""
    images = max(1, _KEPT // (of.groups * of.results * of.area * of.element.bytes))
    all_channels = of.groups * of.sources
    channels = max(1, _KEPT // (images * of.planes.plane * of.element.bytes))
    passes = -(-all_channels // channels)
    return images, -(-all_channels // passes)


def _tile_call(name: str, of: WeightGradient) -> str:
    """Return the call of a tile for the results from `row` on, of one group."""
    size, plane, all_channels = of.kernel[0] * of.kernel[1], of.planes.plane, of.groups * of.sources
    gradient = f"a.gradient + (a.first * {of.groups * of.results} + group * {of.results} + row)"
    source = f"a.source + (a.first * {all_channels} + channel) * {plane}, {all_channels * plane}"
    if not of.planes.is_source:
        source = f"a.room + own * {plane}, a.channels * {plane}"
    result = f"a.result + ((group * {of.results} + row) * {of.sources} + channel % {of.sources})"
    given = f"{gradient} * {of.area}, {source}, {result} * {size}"
    return f"{name}({given}, ky, a.count, a.first > 0);"


def _room(name: str, of: WeightGradient) -> tuple[str, str, str, str]:
    """Return the functions that make the planes of some images, and the lines that find room for
    them, make them, and free the room; nothing where the images can be read as they are."""
    c, planes = of.element.c, of.planes
    if planes.is_source:
        return "", "", "", ""
    channels, plane = of.groups * of.sources, planes.source[0] * planes.source[1]
    functions = f"""\
{planes.text(f"{name}_frame", of.element)}
static void {name}_frames(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
    for (int64_t n = begin; n < end; n++) {{
        const {c} *source = a.source + ((a.first + n) * {channels} + a.channel) * {plane};
        {name}_frame(source, a.room + n * a.channels * {planes.plane}, a.channels);
    }}
}}

"""
    room = aligned("room", c, f"images * {_kept(of)[1] * planes.plane}")
    room += "    given.room = room;\n"
    cost = f"given.count, given.channels * {planes.plane // 4}"
    made = f"            relay_in_parts(run, {name}_frames, &given, {cost});\n"
    return functions, room, made, "    free(room_at);\n"


def _tile(name: str, of: WeightGradient, rows: int, high: int, target: Target) -> str:
    """Return the function that computes `high` rows of the kernel for some results and one
    source."""
    c, columns = of.element.c, of.kernel[1]
    vector = vector_of(of.element, of.planes.grid(of.output), target)
    shape, lanes = vector.shape, vector.lanes
    _, most = dot_size(target, columns)
    taken = [range(n, min(n + most, columns)) for n in range(0, columns, most)]
    passes = "\n".join(indented(_pass(of, rows, t, target), 3) for t in taken)
    near = max(1, _NEAR // ((rows * of.area + of.planes.plane) * of.element.bytes))
    size = of.sources * of.kernel[0] * columns
    each = rows * columns
    count = -(-high * each // lanes) * lanes
    return f"""\
static void {name}(
    const {c} *gradient, const {c} *source, int64_t apart, {c} *result, int64_t begin,
    int64_t count, int adds
) {{
    {shape} kept[{count}] = {{0}};
    for (int64_t first = 0; first < count; first += {near}) {{
        const int64_t last = relay_least_i64(count, first + {near});
        for (int64_t row = 0; row < {high}; row++) {{
            {shape} *sums = kept + row * {each};
            const int64_t ky = begin + row;
{passes}
        }}
    }}
    {c} found[{count}];
    for (int64_t i = 0; i < {count}; i += {lanes})
        relay_store_{shape}(found + i, relay_sums_{shape}(kept + i));
    for (int64_t row = 0; row < {high}; row++)
        for (int64_t i = 0; i < {rows}; i++)
            for (int64_t x = 0; x < {columns}; x++) {{
                {c} *to = result + i * {size} + (begin + row) * {columns} + x;
                *to = (adds ? *to : 0) + found[(row * {rows} + i) * {columns} + x];
            }}
}}
"""


def _pass(of: WeightGradient, rows: int, taken: range, target: Target) -> list[str]:
    """Return the lines that add the products of some columns of a row of the kernel to its sums."""
    c, planes, (height, width) = of.element.c, of.planes, of.planes.grid(of.output)
    vector = vector_of(of.element, (height, width), target)
    lanes, shape = vector.lanes // vector.rows, vector.shape

    def products(at: str, count: int | None) -> list[str]:
        def left(row: int) -> str:
            return vector.load(f"g + {row * of.area} + {at}", width, count)

        def right(column: int) -> str:
            return vector.load(f"p + {planes.at(0, taken[column])} + {at}", planes.step, count)

        return dot(shape, rows, len(taken), left, right)

    whole = width // lanes * lanes
    body: list[str] = []
    if whole:
        body = [f"for (int64_t x = 0; x < {whole}; x += {lanes}) {{"]
        body += [*(f"    {line}" for line in products("x", None)), "}"]
    if width > whole:
        body += ["{", *(f"    {x}" for x in products(str(whole), width - whole)), "}"]
    kept = {
        f"c{i}_{j}": f"sums[{i * of.kernel[1] + kx}]"
        for i in range(rows)
        for j, kx in enumerate(taken)
    }
    return [
        "{",
        f"    {shape} {', '.join(f'{name} = {value}' for name, value in kept.items())};",
        "    for (int64_t n = first; n < last; n++)",
        f"        for (int64_t y = 0; y < {height}; y += {vector.rows}) {{",
        f"            const {c} *g = gradient + n * {of.groups * of.results * of.area}",
        f"                + y * {width};",
        f"            const {c} *p = source + n * apart + {planes.row('y', 'ky')};",
        *(f"            {line}" for line in body),
        "        }",
        *(f"    {value} = {name};" for name, value in kept.items()),
        "}",
    ]


def bias_gradient_text(
    name: str, element: Element, channels: int, area: int, target: Target
) -> str:
    """Return the C function `name(run, gradient, result, count)` that sums each channel over so
    many images."""
    lanes = target.register_bytes // element.bytes
    shape, c = f"{element.name}x{lanes}", element.c
    whole, rest = area // lanes * lanes, area % lanes
    body = []
    if whole:
        body += [
            f"for (int64_t i = 0; i < {whole}; i += {lanes}) sum += relay_load_{shape}(g + i);"
        ]
    if rest:
        body += [f"sum += {load(shape, f'g + {whole}', lanes, rest)};"]
    return f"""\
struct {name} {{ const {c} *gradient; {c} *result; int64_t count; }};

static void {name}_part(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
    for (int64_t channel = begin; channel < end; channel++) {{
        {shape} sum = {{0}};
        for (int64_t n = 0; n < a.count; n++) {{
            const {c} *g = a.gradient + (n * {channels} + channel) * {area};
{indented(body, 3)}
        }}
        a.result[channel] = relay_sum_{shape}(sum);
    }}
}}

static void {name}(relay_run *run, const {c} *gradient, {c} *result, int64_t count) {{
    const struct {name} given = {{gradient, result, count}};
    relay_in_parts(run, {name}_part, &given, {channels}, count * {-(-area // lanes)});
}}
"""
