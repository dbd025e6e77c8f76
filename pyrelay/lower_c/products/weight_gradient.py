"""The gradients of a convolution for its weight and its bias.

A number of the weight's gradient is a sum over all images and places of the gradient of the result
times the source moved by its place in the kernel: rows times rows. As many images as stay in cache
are passed over for all numbers, then the next ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from ..math import Element, Target
from .sweep import Frame, row_block
from .tiles import declared, dot, dot_size, indented, load, sums, vector_of


@final
@dataclass(frozen=True, slots=True)
class WeightGradient:
    """The gradient for a weight as loops: `sources` and `results` are channels of one group."""

    element: Element
    groups: int
    sources: int
    results: int
    frame: Frame
    output: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]


def weight_gradient_text(name: str, of: WeightGradient, target: Target) -> str:
    """Return the C function `name(run, gradient, source, result, count)` for so many images."""
    c, area = of.element.c, of.output[0] * of.output[1]
    most, _ = dot_size(target)
    block = row_block(of.results, most)
    full, rest = divmod(of.results, block)
    blocks = full + (rest > 0)
    tiles = [_tile(f"{name}_{n}", of, n, target) for n in (block, rest) if n]
    chosen = _tile_call(f"{name}_{block}", of)
    if rest:
        last = _tile_call(f"{name}_{rest}", of)
        chosen = f"if (row < {full * block}) {chosen}\n            else {last}"
    frames, before, after = _framed(name, of)
    lanes = target.register_bytes // of.element.bytes
    joined = "\n".join(tiles)
    return f"""\
struct {name} {{
    const {c} *gradient, *source;
    {c} *result, *room;
    int64_t count;
}};

{frames}{joined}
static void {name}_part(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
    int64_t first = 0;
    do {{
        int64_t count = relay_least_i64({_images(of, block)}, a.count - first);
        for (int64_t at = begin; at < end; at++) {{
            int64_t ky = at % {of.kernel[0]}, channel = at / {of.kernel[0]} % {of.sources};
            int64_t block = at / {of.kernel[0] * of.sources}, group = block / {blocks};
            int64_t row = block % {blocks} * {block};
            {chosen}
        }}
        first += count;
    }} while (first < a.count);
}}

static void {name}(
    relay_run *run, const {c} *gradient, const {c} *source, {c} *result, int64_t count
) {{
    struct {name} given = {{gradient, source, result, 0, count}};
{before}    int64_t cost = (count * {area} / {lanes} + 8) * {block * of.kernel[1]};
    int64_t items = {of.groups * blocks * of.sources * of.kernel[0]};
    relay_in_parts(run, {name}_part, &given, items, cost);
{after}}}
"""


_KEPT: Final = 1 << 20
"""The bytes of images that are passed over again and again: they stay in the second-level cache."""


def _images(of: WeightGradient, block: int) -> int:
    """Return how many images are passed over at once."""
    read = of.sources * of.frame.plane + block * of.output[0] * of.output[1]
    return max(1, _KEPT // (read * of.element.bytes))


def _tile_call(name: str, of: WeightGradient) -> str:
    """Return the call of a tile for the results from `row` on, of one group."""
    height, width = of.kernel
    area, groups = of.output[0] * of.output[1], of.groups
    gradient = f"a.gradient + ((first * {groups} + group) * {of.results} + row) * {area}"
    source = f"a.source + ((first * {groups} + group) * {of.sources} + channel) * {of.frame.plane}"
    source += f" + ky * {of.dilation[0] * of.frame.pitch}"
    result = f"a.result + (group * {of.results} + row) * {of.sources * height * width}"
    result += f" + channel * {height * width} + ky * {width}"
    return f"{name}({gradient}, {source}, {result}, count, first > 0);"


def _framed(name: str, of: WeightGradient) -> tuple[str, str, str]:
    """Return the functions that make the frames of all images, and the lines before and behind the
    sums; nothing where the images can be read as they are."""
    c, frame = of.element.c, of.frame
    if frame.is_source:
        return "", "", ""
    channels, plane = of.groups * of.sources, frame.source[0] * frame.source[1]
    functions = f"""\
{frame.text(f"{name}_frame", of.element)}
static void {name}_frames(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
    {name}_frame(a.source + begin * {plane}, a.room + begin * {frame.plane}, end - begin);
}}

"""
    before = f"""\
    given.room = malloc(count * {channels * frame.plane} * sizeof({c}) + 1);
    relay_in_parts(run, {name}_frames, &given, count * {channels}, {frame.plane});
    given.source = given.room;
"""
    return functions, before, "    free(given.room);\n"


def _tile(name: str, of: WeightGradient, rows: int, target: Target) -> str:
    """Return the function that computes a row of the kernel for some results and one source."""
    element, frame, (height, width) = of.element, of.frame, of.output
    vector = vector_of(element, of.output, target)
    lanes, shape, c = vector.lanes // vector.rows, vector.shape, element.c
    pitch = of.stride[0] * frame.pitch
    _, most = dot_size(target)
    size = of.sources * of.kernel[0] * of.kernel[1]
    parts: list[str] = []
    for first in range(0, of.kernel[1], most):
        taken = range(first, min(first + most, of.kernel[1]))
        whole = width // lanes * lanes

        def products(at: str, count: int | None, taken: range = taken) -> list[str]:
            def left(row: int) -> str:
                return vector.load(f"g + {row * height * width} + {at}", width, count)

            def right(column: int) -> str:
                moved = frame.at(0, taken[column] * of.dilation[1])
                return vector.load(f"p + {moved} + {at}", pitch, count)

            return dot(shape, rows, len(taken), left, right)

        body: list[str] = []
        if whole:
            body = [f"for (int64_t x = 0; x < {whole}; x += {lanes}) {{"]
            body += [*(f"    {line}" for line in products("x", None)), "}"]
        if width > whole:
            body += ["{", *(f"    {x}" for x in products(str(whole), width - whole)), "}"]
        names = sums(rows, len(taken))
        ends = [
            f"{at} = (adds ? {at} : 0) + relay_sum_{shape}(c{i}_{j});"
            for i in range(rows)
            for j in range(len(taken))
            for at in (f"result[{i * size + taken[j]}]",)
        ]
        parts.append(f"""\
    {{
        {declared(shape, names)}
        for (int64_t n = 0; n < count; n++)
            for (int64_t y = 0; y < {height}; y += {vector.rows}) {{
                const {c} *g = gradient + n * {of.groups * of.results * height * width}
                    + y * {width};
                const {c} *p = source + n * {of.groups * of.sources * frame.plane}
                    + y * {pitch};
{indented(body, 4)}
            }}
{indented(ends, 2)}
    }}""")
    joined = "\n".join(parts)
    return f"""\
static void {name}(
    const {c} *gradient, const {c} *source, {c} *result, int64_t count, int adds
) {{
{joined}
}}
"""


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
