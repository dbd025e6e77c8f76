"""Kernels of sums of products: tiles of the result, each summed over blocks of what is summed.

Several sums over the same places have an accumulator each. Reductions of what is made of the sums
have whole rows in a tile; reductions beside them go along in the loop. What has an element for each
row alone is stored by the programs of the first tiles.

The products of float32 operands are those of float32 unless the option `tf32` allows fewer bits;
half operands are multiplied as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, final

from ..ir.dims import ONE, Dim, product
from ..ir.types import bfloat16, float32, float64, is_float
from ..kernels.calling import Layout, NoKernel
from ..kernels.groups import Group
from ..kernels.plans.code import Axis
from ..kernels.plans.contraction import (
    ContractionPlan,
    Sum,
    contraction_plan,
    dtype_of_products,
    sorts_in,
)
from ..kernels.plans.terms import Term, is_half
from ..kernels.plans.text import Text
from .block import Block
from .emit import KernelText
from .expressions import type_text
from .kernel import Kernel, Lowered, Target, Tiles
from .rows.combining import Row
from .tiles import configs_of, manners


@final
class _Contraction:
    """The kernel of one plan in the making."""

    def __init__(
        self,
        group: Group,
        plan: ContractionPlan,
        layout: Layout,
        target: Target,
        *,
        is_blocks: bool,
    ) -> None:
        self._group: Final = group
        self._plan: Final = plan
        self._layout: Final = layout
        self._target: Final = target
        self._is_blocks: Final = is_blocks

    def kernel(self) -> Kernel:
        """Return the kernel, without configurations."""
        plan, sorts = self._plan, self._plan.sorts
        kernel = KernelText(self._group.function, plan.supplier.terms, plan.supplier.places)
        kernel.take("batch", "m", "n", "k", "inside", "total", "start", "tile", "width")
        kernel.take("tiles_m", "tiles_n")
        kernel.take("first", "height")
        kernel.count(plan.roots)
        kernel.filled.update(t for s in plan.sums for t in s.sides if t.op == "load")
        block = self._tile(kernel)
        self._loops(kernel, block)
        columns = kernel.dims.size(sorts.columns.count)
        row = Row(block, "n[None, :]", columns)
        for reduction in plan.reductions:
            row.whole(reduction, f"n[None, :] < {columns.inside(1)}")
        for store, is_whole in plan.stores:
            block.store(store, None if is_whole else "tile % width // height == 0")
        tiles = (Tiles(sorts.rows.count, "BLOCK_M"), Tiles(sorts.columns.count, "BLOCK_N"))
        # All are on the first axis, since the others take 65,535 programs at most.
        grid = ((*tiles, Tiles(sorts.batch.count, None)),)
        return kernel.finish(block.lines, grid, ())

    def _tile(self, kernel: KernelText) -> Block:
        """Begin the code: which tile of the result a program computes."""
        sorts = self._plan.sorts
        rows, columns = kernel.dims.size(sorts.rows.count), kernel.dims.size(sorts.columns.count)
        axes = [
            Axis("m", "m[:, None]", f"(m[:, None] < {rows.inside(1)})"),
            Axis("n", "n[None, :]", f"(n[None, :] < {columns.inside(1)})"),
            Axis("batch", "batch", None),
        ]
        for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP"):
            kernel.constant(name)
        block = Block(kernel, axes, ["BLOCK_M", "BLOCK_N"])
        block.line("# Tiles that share operands run at the same time: GROUP rows of tiles at once.")
        block.line("tile = tl.program_id(0)")
        block.line(f"tiles_m, tiles_n = tl.cdiv({rows}, BLOCK_M), tl.cdiv({columns}, BLOCK_N)")
        if sorts.batch.count != ONE:
            wide = ".to(tl.int64)" if self._layout.is_wide else ""
            block.line(f"batch = (tile // (tiles_m * tiles_n)){wide}")
            block.line("tile = tile % (tiles_m * tiles_n)")
        block.line("width = GROUP * tiles_n")
        block.line("first = tile // width * GROUP")
        block.line("height = tl.minimum(tiles_m - first, GROUP)")
        block.line("m = (first + tile % width % height) * BLOCK_M + tl.arange(0, BLOCK_M)")
        block.line("n = tile % width // height * BLOCK_N + tl.arange(0, BLOCK_N)")
        if self._layout.is_wide:
            block.line("m, n = m.to(tl.int64), n.to(tl.int64)")
        return block

    def _loops(self, kernel: KernelText, block: Block) -> None:
        """Write a loop for each count of places that is summed over."""
        totals: dict[Sum, str] = {}
        dtype = type_text(self._plan.accumulated)
        for found in self._plan.sums:
            name = totals[found] = "total" if not totals else kernel.fresh("total")
            block.line(f"{name} = tl.zeros((BLOCK_M, BLOCK_N), {dtype})")
        for reduction in (*self._plan.beside, *self._plan.reductions):
            for term in reduction.results:
                block.set_axes(term, ("m", "batch"))
        for count, along in self._plan.loops.items():
            sums = {s: name for s, name in totals.items() if s.along == along}
            self._loop(kernel, block, count, sums)
        for found, name in totals.items():
            block.set_axes(found.result, ("m", "n"))
            block.put(found.result, Text(name))

    def _loop(self, kernel: KernelText, block: Block, size: Dim, sums: dict[Sum, str]) -> None:
        count = kernel.dims.size(size)
        along = next(iter(sums)).along
        row = Row(block, "k[None, :]", count, ["BLOCK_M", "BLOCK_K"])
        here = [r for r in self._plan.beside if product(r.reduced.domain.along) == size]
        row.start(here)
        sides = [
            ("k[None, :]", "m", "(BLOCK_M, BLOCK_K)"),
            ("k[:, None]", "n", "(BLOCK_K, BLOCK_N)"),
        ]
        inner = ["k = start + tl.arange(0, BLOCK_K)"]
        texts: list[list[str]] = []
        for number, (text, own, shape) in enumerate(sides):
            inside = f"({text} < {count.inside(1)})"
            # Each side has a block of its own: `k` runs along its columns, or down its rows.
            side = Block(kernel, [*block.axes, Axis(along, text, inside)], [], block, along)
            written: dict[Term, str] = {}
            for term in (s.sides[number] for s in sums):
                if term not in written:
                    written[term] = self._side(side, term, inside, (own, along), shape)
            texts.append([written[s.sides[number]] for s in sums])
            if number == 0:
                row.step(side, here, inside[1:-1], "start == 0")
            inner += side.lines
        for total, a, b in zip(sums.values(), *texts, strict=True):
            inner.append(self._added(total, a, b))
        block.line(f"for start in range(0, {count}, BLOCK_K):")
        for line in inner:
            block.line(f"    {line}")
        row.finish(here, "1")

    def _added(self, total: str, a: str, b: str) -> str:
        """Return the line that adds the products of two blocks to a sum."""
        if not self._is_blocks:
            return f"{total} += tl.sum({a}[:, :, None] * {b}[None, :, :], 1)"
        dtype, precision = type_text(self._plan.accumulated), self._precision()
        return f"{total} = tl.dot({a}, {b}, {total}{precision}, out_dtype={dtype})"

    def _side(self, side: Block, term: Term, inside: str, axes: Sequence[str], shape: str) -> str:
        """Return the block of an operand: 0 where there is nothing to sum."""
        text = side.text(term).text
        moves = side.axes_of(term)
        if term not in side.kernel.filled or axes[1] not in moves:
            nothing = "0.0" if is_float(self._plan.dtype) else "0"
            text = f"tl.where({inside[1:-1]}, {text}, {nothing})"
        if not moves >= set(axes):
            text = f"tl.broadcast_to({text}, {shape})"
        if self._is_blocks and is_half(self._plan.dtype) and not self._is_wide_half:
            text = f"{text}.to({type_text(self._plan.dtype)})"
        if text.isidentifier():
            return text
        name = side.kernel.fresh("block")
        side.line(f"{name} = {text}")
        return name

    @property
    def _is_wide_half(self) -> bool:
        """Whether half types are multiplied in float32: the interpreter is wrong in bfloat16."""
        return self._target.is_interpreted and self._plan.dtype == bfloat16

    def _precision(self) -> str:
        if self._plan.dtype != float32:
            return ""
        return f', input_precision="{"tf32" if self._target.is_tf32 else "ieee"}"'


def lower_contraction(group: Group, layout: Layout, target: Target) -> Lowered:
    """Return the kernels of a group around sums of products, for few rows, for few columns, and for
    any. Raises NoKernel."""
    sorts = sorts_in(group)
    if (group.reductions or group.beside) and sorts.rows.count == ONE:
        raise NoKernel("there is one row")
    dtype = dtype_of_products(group)
    has_blocks = is_float(dtype) and (dtype != float64 or target.has_double_blocks)
    texts: dict[bool, Kernel] = {}
    chosen: Lowered | None = None
    for manner in reversed(manners(sorts, has_blocks=has_blocks)):
        if manner.is_blocks not in texts:
            plan = contraction_plan(group, layout)
            made = _Contraction(group, plan, layout, target, is_blocks=manner.is_blocks)
            texts[manner.is_blocks] = made.kernel()
        whole = bool(group.reductions)
        configs = configs_of(manner, sorts, len(group.products), has_whole_rows=whole)
        kernel = replace(texts[manner.is_blocks], configs=configs)
        chosen = Lowered((kernel,), manner.limits(sorts), chosen)
    assert chosen is not None
    return chosen
