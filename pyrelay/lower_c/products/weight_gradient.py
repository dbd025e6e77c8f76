"""The gradients of a convolution for its weight and its bias.

A number of the weight's gradient is a sum over all images and places of the gradient of the result
times the source moved by its place in the kernel: rows times rows. As many images as stay in cache
are passed over for all numbers, then the next ones; of these as few as stay in the first-level
cache for all rows of the kernel, whose sums are kept beside them.
"""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
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
    c, channels = of.element.c, of.groups * of.sources
    block, plane = _block(of, target), of.planes.source[0] * of.planes.source[1]
    full, rest = divmod(of.results, block)
    blocks, shares = full + (rest > 0), -(-_ITEMS // channels)
    tiles = "\n".join(_tile(f"{name}_tile_{n}", of, n, target) for n in (block, rest) if n)
    chosen = _tile_call(f"{name}_tile_{block}", of)
    if rest:
        last = _tile_call(f"{name}_tile_{rest}", of)
        chosen = f"if (row < {full * block}) {chosen}\n                else {last}"
    frames, room, made, freed = _room(name, of)
    images = _images(of)
    lanes = target.register_bytes // of.element.bytes
    cost = f"(count / shares * {of.area // lanes + 1} + 8)"
    cost += f" * {-(-blocks // 2) * block * of.kernel[0] * of.kernel[1]}"
    parts, begin, summed = _shared(of, shares)
    return f"""\
struct {name} {{
    const {c} *gradient, *source;
    {c} *result;
    int64_t count, shares;
}};

{frames}{tiles}
/* Computes half of the results of one channel, from a share of the images. */
static void {name}_part(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
{room}    int64_t passed = 0, most = (a.count + a.shares - 1) / a.shares;
    do {{
        int64_t made = -1; /* The share of the channel whose planes are in the room. */
        for (int64_t at = begin; at < end; at++) {{
            int64_t half = at % 2, channel = at / 2 % {channels}, share = at / {2 * channels};
            int64_t group = channel / {of.sources}, first = share * a.count / a.shares + passed;
            int64_t left = (share + 1) * a.count / a.shares - first, adds = passed > 0;
            if (adds && left <= 0) continue;
            int64_t count = relay_least_i64({images}, left);
            const {c} *source = a.source + (first * {channels} + channel) * {plane};
{made}            for (int64_t block = half; block < {blocks}; block += 2) {{
                int64_t row = block * {block};
                {chosen}
            }}
        }}
        passed += {images};
    }} while (passed < most);
{freed}}}

static void {name}(
    relay_run *run, const {c} *gradient, const {c} *source, {c} *result, int64_t count
) {{
{begin}    const struct {name} given = {{gradient, source, {parts}, count, shares}};
    relay_in_parts(run, {name}_part, &given, shares * {2 * channels}, {cost});
{summed}}}
"""


def _shared(of: WeightGradient, shares: int) -> tuple[str, str, str]:
    """Return where the gradients of some shares of the images are stored, and the lines that find
    room for them and add them up."""
    if shares == 1:
        return "result", "    const int64_t shares = 1;\n", ""
    c, size = of.element.c, of.groups * of.sources * of.results * of.kernel[0] * of.kernel[1]
    begin = f"""\
    const int64_t shares = count < 1 ? 1 : relay_least_i64({shares}, count);
    {c} *parts = shares > 1 ? malloc(shares * {size} * sizeof({c})) : result;
"""
    summed = f"""\
    for (int64_t i = 0; i < {size} && shares > 1; i++) {{
        {c} sum = parts[i];
        for (int64_t share = 1; share < shares; share++) sum += parts[share * {size} + i];
        result[i] = sum;
    }}
    if (shares > 1) free(parts);
"""
    return "parts", begin, summed


_ITEMS: Final = 8
"""Fewer channels than this do not make equal work for threads, so images are shared out."""

_KEPT: Final = 1 << 19
"""The bytes of gradients that are passed over again and again: they stay in the second-level
cache."""

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


def _images(of: WeightGradient) -> int:
    """Return how many images are passed over at once."""
    return max(1, _KEPT // ((of.results * of.area + of.planes.plane) * of.element.bytes))


def _tile_call(name: str, of: WeightGradient) -> str:
    """Return the call of a tile for the results from `row` on, of one group."""
    size, plane, channels = of.kernel[0] * of.kernel[1], of.planes.plane, of.groups * of.sources
    gradient = f"a.gradient + ((first * {of.groups} + group) * {of.results} + row) * {of.area}"
    source = f"source, {channels * plane}" if of.planes.is_source else f"room, {plane}"
    whole = f"(share * {of.groups} + group) * {of.results} + row"
    result = f"a.result + (({whole}) * {of.sources} + channel % {of.sources}) * {size}"
    return f"{name}({gradient}, {source}, {result}, count, adds);"


def _room(name: str, of: WeightGradient) -> tuple[str, str, str, str]:
    """Return the function that makes the planes of an image, and the lines that find room for some,
    make them, and free the room; nothing where the images can be read as they are."""
    c, planes = of.element.c, of.planes
    if planes.is_source:
        return "", "", "", ""
    apart = of.groups * of.sources * planes.source[0] * planes.source[1]
    size = f"relay_least_i64({_images(of)}, a.count) * {planes.plane}"
    made = f"""\
            for (int64_t n = 0; n < count && made != at / 2; n++)
                {name}_frame(source + n * {apart}, room + n * {planes.plane}, 1);
            made = at / 2;
"""
    frames = planes.text(f"{name}_frame", of.element)
    return f"{frames}\n", aligned("room", c, size), made, "    free(room_at);\n"


def _tile(name: str, of: WeightGradient, rows: int, target: Target) -> str:
    """Return the function that computes the numbers of some results and one source."""
    c, (high, columns) = of.element.c, of.kernel
    vector = vector_of(of.element, of.planes.grid(of.output), target)
    shape, lanes = vector.shape, vector.lanes
    _, most = dot_size(target, columns)
    taken = [range(n, min(n + most, columns)) for n in range(0, columns, most)]
    passes = "\n".join(indented(_pass(of, rows, t, target), 3) for t in taken)
    near = max(1, _NEAR // ((rows * of.area + of.planes.plane) * of.element.bytes))
    each = high * columns
    count = -(-rows * each // lanes) * lanes
    return f"""\
static void {name}(
    const {c} *gradient, const {c} *source, int64_t apart, {c} *result, int64_t count, int64_t adds
) {{
    {shape} kept[{count}] = {{0}};
    for (int64_t first = 0; first < count; first += {near}) {{
        const int64_t last = relay_least_i64(count, first + {near});
        for (int64_t ky = 0; ky < {high}; ky++) {{
            {shape} *sums = kept + ky * {columns};
{passes}
        }}
    }}
    {c} found[{count}];
    for (int64_t i = 0; i < {count}; i += {lanes})
        relay_store_{shape}(found + i, relay_sums_{shape}(kept + i));
    for (int64_t i = 0; i < {rows}; i++) {{
        {c} *to = result + i * {of.sources * each};
        for (int64_t at = 0; at < {each}; at++)
            to[at] = (adds ? to[at] : 0) + found[i * {each} + at];
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
        f"c{i}_{j}": f"sums[{i * of.kernel[0] * of.kernel[1] + kx}]"
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
