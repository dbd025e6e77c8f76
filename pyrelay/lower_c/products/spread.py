"""Gradients of convolutions for their images, by addition: each row of the gradient of a result,
times the numbers of the kernel that met it, is added to the rows of the image that it came from.

Unlike a sweep over the gradient with zeros around it this multiplies nothing by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ...dataclass import dataclass
from ..math import Element, Target
from .frames import Frame
from .tiles import Vector, declared, indented, outer, sums, tile_size, vector_of


@final
@dataclass(frozen=True, slots=True)
class Spread:
    """The gradient for an image as loops: `sources` and `results` are channels of one group."""

    element: Element
    groups: int
    sources: int
    results: int
    frame: Frame
    output: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]


def spread_text(name: str, of: Spread, target: Target) -> str:
    """Return the C function `name(run, gradient, weights, result, count)` for so many images."""
    c, frame = of.element.c, of.frame
    size, area = of.kernel[0] * of.kernel[1], of.output[0] * of.output[1]
    channels, plane = of.groups * of.sources, frame.source[0] * frame.source[1]
    begin, room, finish = "", "result", ""
    cut = ""
    if not frame.is_source:
        cut = _cut_out(f"{name}_cut", of)
        begin = f"    {c} *room = malloc({frame.plane} * sizeof({c}));\n"
        room = "room"
        finish = f"        {name}_cut(room, result);\n"
    end = "" if frame.is_source else "    free(room);\n"
    cost = of.results * size * area // (target.register_bytes // of.element.bytes)
    return f"""\
{cut}struct {name} {{ const {c} *gradient, *weights; {c} *result; }};

{_plane(f"{name}_plane", of, target)}
static void {name}_part(const void *given, int64_t begin, int64_t end) {{
    const struct {name} a = *(const struct {name} *)given;
{begin}    for (int64_t at = begin; at < end; at++) {{
        int64_t n = at / {channels}, group = at % {channels} / {of.sources};
        int64_t channel = at % {of.sources};
        {c} *result = a.result + at * {plane};
        memset({room}, 0, {frame.plane} * sizeof({c}));
        {name}_plane(
            a.gradient + (n * {of.groups} + group) * {of.results * area},
            a.weights + (group * {of.results * of.sources} + channel) * {size}, {room}
        );
{finish}    }}
{end}}}

static void {name}(
    relay_run *run, const {c} *gradient, const {c} *weights, {c} *result, int64_t count
) {{
    const struct {name} given = {{gradient, weights, result}};
    relay_in_parts(run, {name}_part, &given, count * {channels}, {cost});
}}
"""


def _cut_out(name: str, of: Spread) -> str:
    """Return the function that copies what lies in a frame."""
    frame, c = of.frame, of.element.c
    height, width = frame.source
    return f"""\
static void {name}(const {c} *from, {c} *to) {{
    for (int64_t y = 0; y < {height}; y++)
        for (int64_t x = 0; x < {width}; x++) {{
            int64_t column = x + {frame.low[1]};
            to[y * {width} + x] = from[(y + {frame.low[0]}) * {frame.pitch}
                + column % {frame.phases} * {frame.columns} + column / {frame.phases}];
        }}
}}

"""


def _plane(name: str, of: Spread, target: Target) -> str:
    """Return the function that adds up one channel of an image, a band of rows at a time.

    The columns of the kernel add to sums of their own, which are added to the image when the band
    is done: an image to which one column has just been added cannot be loaded for the next, one
    element further, before the stores are done.
    """
    height, width = of.output
    vector = vector_of(of.element, of.output, target)
    lanes = vector.lanes // vector.rows
    _, most = tile_size(target)
    counts = [min(lanes, width - x) for x in range(0, width, lanes)]
    chunks = [(i * lanes, counts[i : i + most]) for i in range(0, len(counts), most)]
    down = min(max(1, most // len(chunks[0][1])), height // vector.rows) * vector.rows
    whole = height // down * down
    bands = ((0, whole, down), (whole, height, height - whole))
    blocks = [_band(of, band, chunks, vector, target) for band in bands if band[0] < band[1]]
    c, joined = of.element.c, "\n".join(blocks)
    return f"""\
static void {name}(const {c} *gradient, const {c} *weights, {c} *result) {{
{joined}
}}
"""


def _band(
    of: Spread,
    band: tuple[int, int, int],
    chunks: Sequence[tuple[int, list[int]]],
    vector: Vector,
    target: Target,
) -> str:
    """Return the loop over the bands of `rows` rows of the gradient from one row to another."""
    begin, end, rows = band
    c, width, pitch = of.element.c, of.output[1], of.frame.pitch
    size = _band_rows(of, rows) * width
    rows_most, _ = tile_size(target)
    columns = range(of.kernel[1])
    taken = [columns[i : i + rows_most] for i in range(0, len(columns), rows_most)]
    tiles = "\n".join(_tile(of, t, rows, x, n, vector) for t in taken for x, n in chunks)
    adds = [
        f"to[row * {pitch} + {of.frame.at(0, kx)} + x] += band[{kx * size} + row * {width} + x];"
        for kx in columns
    ]
    loops = "for (int64_t row = 0; row < {}; row++) for (int64_t x = 0; x < {}; x++)"
    loops = loops.format(size // width, width)
    return f"""\
    for (int64_t y = {begin}; y < {end}; y += {rows}) {{
        {c} band[{of.kernel[1] * size}] = {{0}};
        for (int64_t ky = 0; ky < {of.kernel[0]}; ky++) {{
{tiles}
        }}
        {c} *to = result + y * {of.stride[0] * pitch};
{indented([f"{loops} {add}" for add in adds], 2)}
    }}"""


def _band_rows(of: Spread, rows: int) -> int:
    """Return the number of rows of the image to which a band of the gradient is added."""
    return (rows - 1) * of.stride[0] + (of.kernel[0] - 1) * of.dilation[0] + 1


def _tile(
    of: Spread, taken: range, rows: int, begin: int, counts: list[int], vector: Vector
) -> str:
    """Return the lines for some columns of the kernel, and some vectors of rows of the gradient."""
    (height, width), c = of.output, of.element.c
    lanes, pitch = vector.lanes // vector.rows, of.stride[0] * width
    size = _band_rows(of, rows) * width
    places = [
        (y, begin + j * lanes, n if vector.rows == 1 else None)
        for y in range(0, rows, vector.rows)
        for j, n in enumerate(counts)
    ]
    body = outer(
        vector.shape,
        len(taken),
        len(places),
        lambda i: f"w[{taken[i]}]",
        lambda j: vector.load(f"g + {places[j][0] * width + places[j][1]}", width, places[j][2]),
    )
    adds: list[str] = []
    for i, kx in enumerate(taken):
        for j, (y, x, count) in enumerate(places):
            at = f"to + {kx * size + y * pitch + x}"
            value = f"c{i}_{j} + {vector.load(at, pitch, count)}"
            adds.append(vector.store(at, value, pitch, count))
    return f"""\
            {{
                {declared(vector.shape, sums(len(taken), len(places)))}
                const {c} *g = gradient + y * {width};
                const {c} *w = weights + ky * {of.kernel[1]};
                for (int64_t channel = 0; channel < {of.results}; channel++) {{
{indented(body, 5)}
                    g += {height * width};
                    w += {of.sources * of.kernel[0] * of.kernel[1]};
                }}
                {c} *to = band + ky * {of.dilation[0] * width};
{indented(adds, 4)}
            }}"""
