"""The picture of docs/architecture.md: the pipelines of the targets, and the layers of packages.

The pipelines are those that programs run through, the layers those that import-linter checks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from pyrelay.ir.verify import Stage
from pyrelay.passes.manager import Phase
from tests.pages import TARGETS

ROOT = Path(__file__).parents[1]

COLUMN: Final = 152
"""The width of a target's column."""
GAP: Final = 10
LINE: Final = 15
LAYERS_AT: Final = 4 * (COLUMN + GAP) + 30
LAYER_WIDTH: Final = 270
LAYER_HEIGHT: Final = 26
ROW_HEIGHT: Final = LAYER_HEIGHT + 2

RUNS: Final = {
    "evaluator": ("evaluator", "walks the IR"),
    "torch": ("host code", "calls torch"),
    "debugger": ("host code", "line for line"),
    "backends": ("host code", "launches kernels"),
}
"""What becomes of the last module of each pipeline."""

STYLE: Final = """\
  text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328; }
  .title { font: bold 14px system-ui, sans-serif; }
  .name { font-weight: bold; }
  .stage { fill: #0969da; font-size: 11px; }
  .note { font: 12px system-ui, sans-serif; fill: #59636e; }
  rect { fill: #f6f8fa; stroke: #818b98; rx: 4px; }
  rect.torch { fill: #fff1e5; stroke: #bc4c00; }
  rect.end { fill: #ddf4ff; stroke: #0969da; }
  path { stroke: #818b98; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .stage { fill: #4493f8; }
    .note { fill: #9198a1; }
    rect { fill: #151b23; stroke: #656c76; }
    rect.torch { fill: #3d2006; stroke: #db6d28; }
    rect.end { fill: #0c2d6b; stroke: #4493f8; }
    path { stroke: #656c76; }
  }"""


def architecture_picture() -> str:
    """Return the picture as SVG."""
    pipelines, bottom = _pipelines()
    layers, end = _layers()
    width, height = LAYERS_AT + LAYER_WIDTH + GAP, max(bottom, end) + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>The pipelines of pyrelay, and the layers of its packages</title>",
        f"<style>\n{STYLE}\n</style>",
    )
    return "\n".join((*head, *pipelines, *layers, "</svg>", ""))


def _pipelines() -> tuple[list[str], int]:
    """Return the columns of the targets, and where they end. Phases that all pipelines begin with
    stand once, across all columns."""
    wide = 4 * (COLUMN + GAP) - GAP
    drawn = [_text(GAP, 20, "title", "From Python to running code")]
    drawn += _box(GAP, 32, wide, ("a decorated Python function",), "end")
    drawn += _arrow(GAP + wide // 2, 58)
    drawn += _box(GAP, 70, wide, ("translate", f"-> {Stage.TRANSLATED.value}"))
    y = 70 + _height(2)
    shared = _shared()
    for phase in shared:
        drawn += _arrow(GAP + wide // 2, y)
        lines = (phase.name, ", ".join(step.name for step in phase.passes), *_reached(phase))
        drawn += _box(GAP, y + 12, wide, lines)
        y += 12 + _height(len(lines))
    ends = [y]
    for number, (target, pipeline) in enumerate(TARGETS.items()):
        column, end = _column(GAP + number * (COLUMN + GAP), y, target, pipeline[len(shared) :])
        drawn += column
        ends.append(end)
    return drawn, max(ends)


def _shared() -> list[Phase]:
    found: list[Phase] = []
    for first, *others in zip(*TARGETS.values(), strict=False):
        if any(other != first for other in others):
            break
        found.append(first)
    return found


def _column(x: int, y: int, target: str, phases: Iterable[Phase]) -> tuple[list[str], int]:
    drawn = _arrow(x + COLUMN // 2, y)
    drawn.append(_text(x, y + 27, "title", target))
    y += 22
    for phase in phases:
        lines = (phase.name, *(step.name for step in phase.passes), *_reached(phase))
        drawn += [
            *_box(x, y + 12, COLUMN, lines),
            *_arrow(x + COLUMN // 2, y + 12 + _height(len(lines))),
        ]
        y += 12 + _height(len(lines))
    drawn += _box(x, y + 12, COLUMN, RUNS[target], "end")
    return drawn, y + 12 + _height(2)


def _reached(phase: Phase) -> Iterator[str]:
    if phase.gives is not None:
        yield f"-> {phase.gives.value}"


def _layers() -> tuple[list[str], int]:
    """Return the layers, the highest first, and where they end."""
    above, without_torch = _contracts()
    drawn = [_text(LAYERS_AT, 20, "title", "Layers: each imports those below")]
    y = 32
    for layer in above:
        names = [part.strip(" ()") for part in layer.split("|")]
        across = min(len(names), 2)
        width = (LAYER_WIDTH - GAP * (across - 1)) // across
        for number, name in enumerate(names):
            kind = "" if f"pyrelay.{name}" in without_torch else "torch"
            x = LAYERS_AT + number % across * (width + GAP)
            drawn += _box(x, y + number // across * ROW_HEIGHT, width, (name,), kind)
        y += (len(names) + 1) // 2 * ROW_HEIGHT + 4
    drawn.append(_text(LAYERS_AT, y + 14, "note", "Orange: may import torch."))
    return drawn, y + 20


def _contracts() -> tuple[list[str], frozenset[str]]:
    """Return the layers, and the packages that import neither torch nor triton."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    return layers, frozenset(
        name for c in contracts if c["type"] == "forbidden" for name in c["source_modules"]
    )


def _height(lines: int) -> int:
    return lines * LINE + 11


def _box(x: int, y: int, width: int, lines: Sequence[str], kind: str = "") -> list[str]:
    """Return a box with lines of text, of which the first is the name."""
    shape = f' class="{kind}"' if kind else ""
    height = _height(len(lines))
    drawn = [f'<rect{shape} x="{x}" y="{y}" width="{width}" height="{height}"/>']
    for number, line in enumerate(lines):
        style = "stage" if line.startswith("->") else "name" if number == 0 else ""
        shown = line.replace("->", "\N{RIGHTWARDS ARROW}")
        drawn.append(_text(x + 8, y + 17 + number * LINE, style, shown))
    return drawn


def _text(x: int, y: int, kind: str, text: str) -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x}" y="{y}">{escape(text)}</text>'


def _arrow(x: int, y: int) -> list[str]:
    """Return an arrow that leads from the end of one box to the next."""
    return [f'<path d="M{x} {y} v10 m-3 -4 l3 4 l3 -4"/>']
