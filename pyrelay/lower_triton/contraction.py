"""Kernels of a sum of products: tiles of the result, each summed over blocks of what is summed.

Each dim of the sum is one of four: of both operands and the result (the batch), of the first and
the result (`m`), of the second and the result (`n`), or of both operands alone (`k`). Dims of one
sort are numbered row by row as one. What operands are made of is computed on the way in, and what
is made of the sum on the way out, while it is in registers.

Sums are float32, for float64 operands float64. The products of float32 operands are those of
float32 unless the option `tf32` allows fewer bits; half operands are multiplied as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from ..ir.dims import ONE, Dim, product
from ..ir.expr import Var, type_of
from ..ir.types import DType, bfloat16, float32, float64
from ..passes.regions.groups import Group, Output, Product
from ..passes.regions.reading import dtype_of, shape_of
from .block import Block
from .emit import KernelText
from .expressions import type_text
from .indexing import Axis
from .kernel import Config, Kernel, Layout, Lowered, NoKernel, Tiles
from .supplier import TermSupplier
from .terms import Term, is_half
from .text import Text

_LARGEST: Final = 128
_SMALLEST: Final = 16
"""A tile has no fewer rows, columns and products: the least that a device multiplies at once."""


@final
@dataclass(frozen=True, slots=True)
class _Sort:
    """The dims of a sum that are of one sort: their letters, and how many places they have."""

    letters: str
    sizes: tuple[Dim, ...]

    @property
    def count(self) -> Dim:
        """The number of places."""
        return product(self.sizes)


@final
class _Sorts:
    """The dims of a sum of two operands, by sort. Raises NoKernel for any other sum."""

    def __init__(self, found: Product) -> None:
        if len(found.subscripts) != 2:
            raise NoKernel("it is no product of two operands")
        first, second = found.subscripts
        if any(len(set(s)) != len(s) for s in (first, second)):
            raise NoKernel("it takes a diagonal")
        if not set(first) ^ set(second) <= set(found.result) <= set(first) | set(second):
            raise NoKernel("it sums what only one operand has")
        self._found: Final = found
        self.batch: Final = self._sort(lambda c: c in first and c in second and c in found.result)
        self.m: Final = self._sort(lambda c: c not in second)
        self.n: Final = self._sort(lambda c: c not in first)
        self.k: Final = self._sort(lambda c: c not in found.result)
        if ONE in (self.m.count, self.n.count):
            raise NoKernel("one of its operands is a vector")

    def _sort(self, belongs: object) -> _Sort:
        assert callable(belongs)
        letters = "".join(c for c in self._found.sizes if belongs(c))
        return _Sort(letters, tuple(self._found.sizes[c] for c in letters))


@final
class _Contraction:
    """The kernel of one group in the making."""

    def __init__(self, group: Group, layout: Layout) -> None:
        assert group.product is not None
        self._group: Final = group
        self._layout: Final = layout
        self._product: Final = group.product
        self._sorts: Final = _Sorts(group.product)
        self._dtype: Final = _dtype_of_products(group.product)
        leaves = {group.product.var: self._sum_at}
        self._supplier: Final = TermSupplier(group.function, layout, leaves)
        self._places: Final = self._supplier.places
        self._at: Final = self._coordinates()
        result = group.product.result
        self._index: Final = tuple(self._at[c] for c in result)
        self._shape: Final = tuple(group.product.sizes[c] for c in result)
        accumulated = float64 if self._dtype == float64 else float32
        self._sum: Final = self._supplier.terms.make("result", dtype=accumulated, detail=(0,))

    def _coordinates(self) -> dict[str, Dim]:
        """Give the coordinate of each dim of the sum."""
        found: dict[str, Dim] = {}
        sorts = self._sorts
        for name, sort in (("batch", sorts.batch), ("m", sorts.m), ("n", sorts.n), ("k", sorts.k)):
            flat = self._places.coordinate(name, sort.count)
            index = self._places.relocated((flat,), (sort.count,), sort.sizes)
            found |= dict(zip(sort.letters, index, strict=True))
        return found

    def _sum_at(self, var: Var, index: tuple[Dim, ...]) -> Term:
        if tuple(map(self._places.simplified, index)) != self._index:
            raise NoKernel("another element of the sum is used than the one at hand")
        return self._sum

    def kernel(self) -> Kernel:
        """Give the kernel."""
        operands = [self._operand(i) for i in range(2)]
        stored = [(o, self._output_index(o)) for o in self._group.outputs]
        results = [self._supplier.element(o.value, index) for o, index in stored]
        kernel = KernelText(self._group.function, self._supplier.terms, self._places)
        kernel.take("batch", "m", "n", "k", "inside", "total", "start", "tile", "tiles_n", "width")
        kernel.take("first", "height")
        kernel.count([*operands, *results])
        kernel.filled.update(o for o in operands if o.op == "load")
        block = self._tile(kernel)
        self._loop(kernel, block, operands)
        block.set_axes(self._sum, ("m", "n"))
        block.put(self._sum, Text("total"))
        for (output, index), term in zip(stored, results, strict=True):
            pointer, at = self._supplier.target(kernel, output, index)
            block.store(pointer, at, term)
        tiles = (Tiles(self._sorts.m.count, "BLOCK_M"), Tiles(self._sorts.n.count, "BLOCK_N"))
        grid = (tiles, (Tiles(self._sorts.batch.count, None),))
        return kernel.finish(block.lines, grid, self._configs())

    def _operand(self, number: int) -> Term:
        atom = self._product.operands[number]
        shape = shape_of(type_of(atom))
        index = [
            Dim.of(0) if size == ONE else self._at[c]
            for c, size in zip(self._product.subscripts[number], shape, strict=True)
        ]
        return self._supplier.element(atom, index)

    def _output_index(self, output: Output) -> tuple[Dim, ...]:
        shape = shape_of(type_of(output.value))
        return self._places.relocated(self._index, self._shape, shape)

    def _tile(self, kernel: KernelText) -> Block:
        """Begin the code: which tile of the result a program computes."""
        rows, columns = kernel.dims.size(self._sorts.m.count), kernel.dims.size(self._sorts.n.count)
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
        block.line(f"tiles_n = tl.cdiv({columns}, BLOCK_N)")
        block.line("width = GROUP * tiles_n")
        block.line("first = tile // width * GROUP")
        block.line(f"height = tl.minimum(tl.cdiv({rows}, BLOCK_M) - first, GROUP)")
        block.line("m = (first + tile % width % height) * BLOCK_M + tl.arange(0, BLOCK_M)")
        block.line("n = tile % width // height * BLOCK_N + tl.arange(0, BLOCK_N)")
        if self._layout.is_wide:
            block.line("m, n = m.to(tl.int64), n.to(tl.int64)")
        if self._sorts.batch.count != ONE:
            wide = ".to(tl.int64)" if self._layout.is_wide else ""
            block.line(f"batch = tl.program_id(1){wide}")
        return block

    def _loop(self, kernel: KernelText, block: Block, operands: Sequence[Term]) -> None:
        """Write the loop over what is summed."""
        accumulated = type_text(float64 if self._dtype == float64 else float32)
        count = kernel.dims.size(self._sorts.k.count)
        block.line(f"total = tl.zeros((BLOCK_M, BLOCK_N), {accumulated})")
        sides = [
            ("k[None, :]", ("m", "k"), "(BLOCK_M, BLOCK_K)"),
            ("k[:, None]", ("k", "n"), "(BLOCK_K, BLOCK_N)"),
        ]
        inner = ["k = start + tl.arange(0, BLOCK_K)"]
        texts: list[str] = []
        for term, (text, axes, shape) in zip(operands, sides, strict=True):
            inside = f"({text} < {count.inside(1)})"
            # Each side has a block of its own: `k` runs along its columns, or down its rows.
            side = Block(kernel, [*block.axes, Axis("k", text, inside)], [], block, "k")
            texts.append(self._side(side, term, inside, axes, shape))
            inner += side.lines
        a, b = texts
        precision = self._precision()
        inner.append(f"total = tl.dot({a}, {b}, total{precision}, out_dtype={accumulated})")
        block.line(f"for start in range(0, {count}, BLOCK_K):")
        for line in inner:
            block.line(f"    {line}")

    def _side(self, side: Block, term: Term, inside: str, axes: tuple[str, str], shape: str) -> str:
        """Give the block of an operand as `tl.dot` takes it: 0 where there is nothing to sum."""
        text = side.text(term).text
        moves = side.axes_of(term)
        if term not in side.kernel.filled or "k" not in moves:
            text = f"tl.where({inside[1:-1]}, {text}, 0.0)"
        if not moves >= set(axes):
            text = f"tl.broadcast_to({text}, {shape})"
        if is_half(self._dtype) and not (self._layout.is_interpreted and self._dtype == bfloat16):
            text = f"{text}.to({type_text(self._dtype)})"
        if text.isidentifier():
            return text
        name = side.kernel.fresh("block")
        side.line(f"{name} = {text}")
        return name

    def _precision(self) -> str:
        if self._dtype != float32:
            return ""
        return f', input_precision="{"tf32" if self._layout.is_tf32 else "ieee"}"'

    def _configs(self) -> tuple[Config, ...]:
        """Give sizes of tiles, none larger than the result where its size is known: large tiles
        read operands less often, small ones are more programs."""
        known = [_block(s.count) for s in (self._sorts.m, self._sorts.n, self._sorts.k)]
        found: dict[Config, None] = {}
        for m, n, k, warps, stages in _TILES:
            sizes = (min(m, known[0]), min(n, known[1]), min(k, max(known[2], _SMALLEST)))
            named = zip(("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP"), (*sizes, 8), strict=True)
            found[Config(tuple(named), warps, stages)] = None
        return tuple(found)


_TILES: Final = (
    (64, 64, 32, 4, 3),
    (128, 128, 32, 8, 3),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (32, 32, 64, 4, 4),
    (16, 64, 64, 2, 4),
)
"""Rows, columns and products of a tile, warps and stages. A tile of 64 x 64 fills a device from
products of about 1,000 x 1,000 on, which is where products of our own pay."""


def _block(count: Dim) -> int:
    """Give the least block that covers a count, if that is known, within limits."""
    size = count.constant
    if size is None:
        return _LARGEST
    return min(_LARGEST, max(_SMALLEST, 1 << (size - 1).bit_length())) if size else _SMALLEST


def _dtype_of_products(found: Product) -> DType:
    dtypes = {dtype_of(type_of(a)) for a in found.operands}
    if len(dtypes) != 1:
        raise NoKernel("its operands have different dtypes")
    (dtype,) = dtypes
    if not (is_half(dtype) or dtype in (float32, float64)):
        raise NoKernel(f"products of {dtype} are not multiplied as blocks")
    return dtype


def lower_contraction(group: Group, layout: Layout) -> Lowered:
    """Give the kernel of a group around a sum of products. Raises NoKernel."""
    return Lowered((_Contraction(group, layout).kernel(),))
