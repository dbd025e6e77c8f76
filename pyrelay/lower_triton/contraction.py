"""Kernels of sums of products: tiles of the result, each summed over blocks of what is summed.

Each dim of a sum is one of four (`kernels.contraction_axes`): of the batch, of the rows (`m`), of
the columns (`n`), or summed (`k`). Dims of one sort are numbered row by row as one. What operands
are made of is computed on the way in, and what is made of the sums on the way out, while they are
in registers. Several sums over the same places have an accumulator each; those that sum over as
many places share a loop, and with it what they read.

Reductions of what is made of the sums have whole rows in a tile; reductions beside them, of what
one operand is made of, go along in the loop. What has an element for each row alone is stored by
the programs of the first tiles. The reduced dims of the group's domain are the columns here,
whichever operand they are of.

Sums are float32, for float64 operands float64, for whole numbers what the result is. The products
of float32 operands are those of float32 unless the option `tf32` allows fewer bits; half operands
are multiplied as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from ..ir.dims import ONE, ZERO, Dim, product
from ..ir.expr import Var, type_of
from ..ir.types import DType, bfloat16, float32, float64, is_float
from ..kernels.contraction_axes import ROW, Sort, Sorts, sorts_of
from ..kernels.groups import Domain, Group, Product, Reduced
from ..kernels.places import linear
from ..kernels.reading import dtype_of, shape_of
from .block import Block
from .emit import KernelText
from .expressions import type_text
from .indexing import Axis
from .kernel import Kernel, Layout, Lowered, NoKernel, Tiles
from .rows.combining import Row
from .rows.reductions import Reduction, combining_dtype, first_of, result_terms
from .supplier import TermSupplier
from .terms import Term, is_half, widened
from .text import Text
from .tiles import configs_of, manners


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """One of the sums of a kernel: its dims, the coordinate of what is summed, the element of each
    operand, that with the rows first, and the term of what the loop gives."""

    product: Product
    sorts: Sorts
    along: str
    sides: tuple[Term, Term]
    result: Term


@final
class _Contraction:
    """The kernel of one group in the making."""

    def __init__(self, group: Group, layout: Layout, *, is_blocks: bool) -> None:
        self._group: Final = group
        self._layout: Final = layout
        self._is_blocks: Final = is_blocks
        self._dtype: Final = _dtype_of_products(group.products)
        self._accumulated: Final = _accumulated(group.products[0], self._dtype)
        self._reduced: Final[dict[Var, Reduction]] = {}
        leaves = {p.var: self._sum_at for p in group.products}
        leaves |= {r.var: self._reduced_at for r in (*group.beside, *group.reductions)}
        self._supplier: Final = TermSupplier(group.function, layout, leaves)
        self._places: Final = self._supplier.places
        first = group.products[0]
        self._is_turned: Final = is_turned(group)
        self.sorts: Final = sorts_in(group)
        at = self._coordinates()
        self._index: Final = tuple(at[c] for c in first.result)
        shape = tuple(first.sizes[c] for c in first.result)
        self._domain: Final = group.domain or Domain(shape, ())
        self._along: Final[dict[Dim, tuple[str, Dim]]] = {}
        self._results: Final = {
            p.var: self._supplier.terms.make("result", dtype=self._accumulated, detail=(i,))
            for i, p in enumerate(group.products)
        }
        self._sums: Final = tuple(map(self._sum, group.products))
        self._reductions: Final = [self._reduction(r) for r in (*group.beside, *group.reductions)]

    def _coordinates(self) -> dict[str, Dim]:
        """Return the coordinate of each dim of the result, by the letter of the first sum."""
        sorts = self.sorts
        pairs = (("batch", sorts.batch), ("m", sorts.rows), ("n", sorts.columns))
        found: dict[str, Dim] = {}
        for name, sort in pairs:
            found |= self._spread(self._places.coordinate(name, sort.count), sort)
        return found

    def _spread(self, flat: Dim, sort: Sort) -> dict[str, Dim]:
        index = self._places.relocated((flat,), (sort.count,), sort.sizes)
        return dict(zip(sort.letters, index, strict=True))

    def _sum(self, made: Product) -> _Sum:
        sorts = _sorts(made)
        count = sorts.summed.count
        if count not in self._along:
            name = f"k{len(self._along) + 1}" if self._along else "k"
            self._along[count] = (name, self._places.coordinate(name, count))
        name, flat = self._along[count]
        at = dict(zip(made.result, self._index, strict=True)) | self._spread(flat, sorts.summed)
        order = sorts.order[::-1] if self._is_turned else sorts.order
        first, second = (self._operand(made, i, at) for i in order)
        return _Sum(made, sorts, name, (first, second), self._results[made.var])

    def _operand(self, made: Product, number: int, at: dict[str, Dim]) -> Term:
        atom = made.operands[number]
        shape = shape_of(type_of(atom))
        pairs = zip(made.subscripts[number], shape, strict=True)
        term = self._supplier.element(atom, [ZERO if s == ONE else at[c] for c, s in pairs])
        return self._supplier.elements(self._dtype, ()).cast(term, widened(self._dtype))

    def _sum_at(self, var: Var, index: tuple[Dim, ...]) -> Term:
        if tuple(map(self._places.simplified, index)) != self._index:
            raise NoKernel("another element of the sum is used than the one at hand")
        return self._results[var]

    def _reduction(self, reduced: Reduced) -> Reduction:
        """Return a reduction of what is made of the sums, or beside them."""
        if reduced in self._group.beside:
            own = reduced.domain
            sizes = tuple(own.shape[i] for i in own.reduced)
            count = product(sizes)
            _, flat = self._along[count]
            along = self._places.relocated((flat,), (count,), sizes)
            at = own.at(self._places.relocated(self._kept, self._domain.kept, own.kept), along)
        else:
            at = self._place(shape_of(type_of(reduced.operand)))
        dtype = combining_dtype(reduced)
        term = self._supplier.element(reduced.operand, at)
        operand = self._supplier.elements(dtype, ()).cast(term, dtype)
        made = result_terms(self._supplier.terms, reduced, len(self._results) + len(self._reduced))
        found = self._reduced[reduced.var] = Reduction(reduced, operand, *made)
        return found

    @property
    def _kept(self) -> tuple[Dim, ...]:
        return tuple(c for i, c in enumerate(self._index) if i not in self._domain.reduced)

    def _place(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return where a value of a shape has its element for the place at hand."""
        return self._domain.place(self._places, self._index, shape)

    def _reduced_at(self, var: Var, index: tuple[Dim, ...]) -> Term | tuple[Term, ...]:
        found = self._reduced[var]
        at = self._places.simplified(linear(index, shape_of(first_of(type_of(found.reduced.call)))))
        if at != self._places.simplified(linear(self._kept, self._domain.kept)):
            raise NoKernel(f"`{var.name}` is needed of another row than the one at hand")
        first, *others = found.results
        return (first, *others) if others else first

    def kernel(self) -> Kernel:
        """Return the kernel, without configurations."""
        stored = [(o, self._place(shape_of(type_of(o.value)))) for o in self._group.outputs]
        results = [self._supplier.element(o.value, index) for o, index in stored]
        operands = [t for s in self._sums for t in s.sides]
        kernel = KernelText(self._group.function, self._supplier.terms, self._places)
        kernel.take("batch", "m", "n", "k", "inside", "total", "start", "tile", "width")
        kernel.take("tiles_m", "tiles_n")
        kernel.take("first", "height")
        kernel.count([*operands, *(r.operand for r in self._reductions), *results])
        kernel.filled.update(o for o in operands if o.op == "load")
        block = self._tile(kernel)
        self._loops(kernel, block)
        columns = kernel.dims.size(self.sorts.columns.count)
        row = Row(block, "n[None, :]", columns)
        for reduction in self._reductions[len(self._group.beside) :]:
            row.whole(reduction, f"n[None, :] < {columns.inside(1)}")
        for (output, index), term in zip(stored, results, strict=True):
            pointer, at = self._supplier.target(kernel, output, index)
            is_whole = self._domain.is_whole(shape_of(type_of(output.value)))
            block.store(pointer, at, term, None if is_whole else "tile % width // height == 0")
        tiles = (
            Tiles(self.sorts.rows.count, "BLOCK_M"),
            Tiles(self.sorts.columns.count, "BLOCK_N"),
        )
        # All are on the first axis, since the others take 65,535 programs at most.
        grid = ((*tiles, Tiles(self.sorts.batch.count, None)),)
        return kernel.finish(block.lines, grid, ())

    def _tile(self, kernel: KernelText) -> Block:
        """Begin the code: which tile of the result a program computes."""
        rows = kernel.dims.size(self.sorts.rows.count)
        columns = kernel.dims.size(self.sorts.columns.count)
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
        if self.sorts.batch.count != ONE:
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
        totals: dict[_Sum, str] = {}
        dtype = type_text(self._accumulated)
        for found in self._sums:
            name = totals[found] = "total" if not totals else kernel.fresh("total")
            block.line(f"{name} = tl.zeros((BLOCK_M, BLOCK_N), {dtype})")
        for reduction in self._reductions:
            for term in reduction.results:
                block.set_axes(term, ("m", "batch"))
        for count, (along, _) in self._along.items():
            sums = {s: name for s, name in totals.items() if s.along == along}
            self._loop(kernel, block, count, sums)
        for found, name in totals.items():
            block.set_axes(found.result, ("m", "n"))
            block.put(found.result, Text(name))

    def _loop(self, kernel: KernelText, block: Block, size: Dim, sums: dict[_Sum, str]) -> None:
        count = kernel.dims.size(size)
        along = next(iter(sums)).along
        row = Row(block, "k[None, :]", count, ["BLOCK_M", "BLOCK_K"])
        beside = [r for r in self._reductions if r.reduced in self._group.beside]
        here = [r for r in beside if product(r.reduced.reduced_sizes) == size]
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
        dtype, precision = type_text(self._accumulated), self._precision()
        return f"{total} = tl.dot({a}, {b}, {total}{precision}, out_dtype={dtype})"

    def _side(self, side: Block, term: Term, inside: str, axes: Sequence[str], shape: str) -> str:
        """Return the block of an operand: 0 where there is nothing to sum."""
        text = side.text(term).text
        moves = side.axes_of(term)
        if term not in side.kernel.filled or axes[1] not in moves:
            nothing = "0.0" if is_float(self._dtype) else "0"
            text = f"tl.where({inside[1:-1]}, {text}, {nothing})"
        if not moves >= set(axes):
            text = f"tl.broadcast_to({text}, {shape})"
        if self._is_blocks and is_half(self._dtype) and not self._is_wide_half:
            text = f"{text}.to({type_text(self._dtype)})"
        if text.isidentifier():
            return text
        name = side.kernel.fresh("block")
        side.line(f"{name} = {text}")
        return name

    @property
    def _is_wide_half(self) -> bool:
        """Whether half types are multiplied in float32: the interpreter is wrong in bfloat16."""
        return self._layout.is_interpreted and self._dtype == bfloat16

    def _precision(self) -> str:
        if self._dtype != float32:
            return ""
        return f', input_precision="{"tf32" if self._layout.is_tf32 else "ieee"}"'


def _sorts(found: Product) -> Sorts:
    sorts = sorts_of(found)
    if isinstance(sorts, str):
        raise NoKernel(sorts)
    return sorts


def is_turned(group: Group) -> bool:
    """Return whether the rows of the sums are the columns of the kernel: the reduced dims."""
    first = _sorts(group.products[0])
    if group.domain is None:
        return False
    tags = {name for i, (name, _) in enumerate(first.structure) if i in group.domain.reduced}
    return ROW in tags


def sorts_in(group: Group) -> Sorts:
    """Return the dims of the sums of a group, by sort, as the kernel has them. Raises NoKernel."""
    first = _sorts(group.products[0])
    if not is_turned(group):
        return first
    return replace(first, rows=first.columns, columns=first.rows)


def _dtype_of_products(found: Sequence[Product]) -> DType:
    dtypes = {dtype_of(type_of(a)) for p in found for a in p.operands}
    if len(dtypes) != 1:
        raise NoKernel("its operands have different dtypes")
    (dtype,) = dtypes
    return dtype


def _accumulated(made: Product, dtype: DType) -> DType:
    """Return the dtype of sums of products."""
    if not is_float(dtype):
        return dtype_of(type_of(made.var))
    return float64 if dtype == float64 else float32


def lower_contraction(group: Group, layout: Layout) -> Lowered:
    """Return the kernels of a group around sums of products, for few rows, for few columns, and for
    any. Raises NoKernel."""
    sorts = sorts_in(group)
    if (group.reductions or group.beside) and sorts.rows.count == ONE:
        raise NoKernel("there is one row")
    dtype = _dtype_of_products(group.products)
    has_blocks = is_float(dtype) and (dtype != float64 or layout.has_double_blocks)
    texts: dict[bool, Kernel] = {}
    chosen: Lowered | None = None
    for manner in reversed(manners(sorts, has_blocks=has_blocks)):
        if manner.is_blocks not in texts:
            made = _Contraction(group, layout, is_blocks=manner.is_blocks)
            texts[manner.is_blocks] = made.kernel()
        whole = bool(group.reductions)
        configs = configs_of(manner, sorts, len(group.products), has_whole_rows=whole)
        kernel = replace(texts[manner.is_blocks], configs=configs)
        chosen = Lowered((kernel,), manner.limits(sorts), chosen)
    assert chosen is not None
    return chosen
