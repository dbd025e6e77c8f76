"""The plan of sums of products, and of what is made of them while they are in registers.

Each dim of a sum is one of four (`kernels.contraction_axes`): of the batch, of the rows (`m`), of
the columns (`n`), or summed (`k`). Dims of one sort are numbered row by row as one. Operands are
computed on the way in, and what is made of the sums on the way out. Sums that go over as many
places share a loop, and with it what they read.

Reductions of what is made of the sums have whole rows; reductions beside them, of what one operand
is made of, go along in the loop. The reduced dims of the group's domain are the columns of the
plan, whichever operand they are of.

Sums are float32, for float64 operands float64, for whole numbers in the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import ONE, ZERO, Dim, product
from ...ir.expr import Var, type_of
from ...ir.types import DType, float32, float64, is_float
from ..calling import Layout, NoKernel
from ..contraction_axes import ROW, Sort, Sorts, sorts_of
from ..groups import Domain, Group, Product, Reduced
from ..places import linear
from ..reading import dtype_of, first_of, shape_of
from .reductions import Reduction, combining_dtype, result_terms
from .supplier import Store, TermSupplier
from .terms import Term, widened


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """One of the sums of a kernel: the coordinate of what is summed, the element of each operand,
    that with the rows first, and the term of its result."""

    along: str
    sides: tuple[Term, Term]
    result: Term


@final
@dataclass(frozen=True, slots=True, eq=False)
class ContractionPlan:
    """A pass with sums of products: `loops` are the coordinates of what is summed, by how many
    places there are; `stores` say of each output whether it has an element for each place of the
    result, not for each row. It is turned where the rows of its sums, which are reduced, are its
    columns."""

    supplier: TermSupplier
    sorts: Sorts
    dtype: DType
    accumulated: DType
    loops: dict[Dim, str]
    sums: tuple[Sum, ...]
    beside: tuple[Reduction, ...]
    reductions: tuple[Reduction, ...]
    stores: tuple[tuple[Store, bool], ...]
    is_turned: bool

    @property
    def roots(self) -> list[Term]:
        """The terms that are asked for."""
        operands = [t for s in self.sums for t in s.sides]
        reduced = [r.operand for r in (*self.beside, *self.reductions)]
        return [*operands, *reduced, *(s.term for s, _ in self.stores)]


def contraction_plan(group: Group, layout: Layout) -> ContractionPlan:
    """Return the plan of a pass with sums of products. Raises NoKernel."""
    return _ContractionReader(group, layout).plan()


def sorts_in(group: Group) -> Sorts:
    """Return the dims of the sums of a group, by sort, as its plan has them. Raises NoKernel."""
    first = _sorts(group.products[0])
    return first.turned() if _is_turned(group, first) else first


def dtype_of_products(group: Group) -> DType:
    """Return the dtype of the operands of the sums of a group. Raises NoKernel where they have
    several."""
    dtypes = {dtype_of(type_of(a)) for p in group.products for a in p.operands}
    if len(dtypes) != 1:
        raise NoKernel("its operands have different dtypes")
    (dtype,) = dtypes
    return dtype


def _sorts(found: Product) -> Sorts:
    sorts = sorts_of(found)
    if isinstance(sorts, str):
        raise NoKernel(sorts)
    return sorts


def _is_turned(group: Group, first: Sorts) -> bool:
    """Return whether the rows of the sums are the columns of the plan: the reduced dims."""
    if group.domain is None:
        return False
    return any(first.structure[i][0] == ROW for i in group.domain.reduced)


@final
class _ContractionReader:
    """Reads one group: its sums and reductions are leaves, whose operands are read in turn."""

    def __init__(self, group: Group, layout: Layout) -> None:
        self._group: Final = group
        self._dtype: Final = dtype_of_products(group)
        first = group.products[0]
        self._accumulated: Final = _accumulated(first, self._dtype)
        self._reduced: Final[dict[Var, Reduction]] = {}
        leaves = {p.var: self._sum_at for p in group.products}
        leaves |= {r.var: self._reduced_at for r in (*group.beside, *group.reductions)}
        self._supplier: Final = TermSupplier(group.function, layout, leaves)
        self._places: Final = self._supplier.places
        self._sorts: Final = sorts_in(group)
        self._is_turned: Final = _is_turned(group, _sorts(first))
        at: dict[str, Dim] = {}
        sorts = (self._sorts.batch, self._sorts.rows, self._sorts.columns)
        for name, sort in zip(("batch", "m", "n"), sorts, strict=True):
            at |= self._spread(self._places.coordinate(name, sort.count), sort)
        self._index: Final = tuple(at[c] for c in first.result)
        shape = tuple(first.sizes[c] for c in first.result)
        self._domain: Final = group.domain or Domain(shape, ())
        kept = tuple(c for i, c in enumerate(self._index) if i not in self._domain.reduced)
        self._kept: Final = kept
        self._along: Final[dict[Dim, tuple[str, Dim]]] = {}
        self._results: Final = {
            p.var: self._supplier.terms.make("result", dtype=self._accumulated, detail=(i,))
            for i, p in enumerate(group.products)
        }

    def plan(self) -> ContractionPlan:
        """Return the plan."""
        group = self._group
        sums = tuple(map(self._sum, group.products))
        beside = tuple(self._reduction(r, self._place_beside(r)) for r in group.beside)
        across = tuple(
            self._reduction(r, self._place(shape_of(type_of(r.operand)))) for r in group.reductions
        )
        shapes = [shape_of(type_of(o.value)) for o in group.outputs]
        stores = tuple(
            (self._supplier.store(o, self._place(shape)), self._domain.is_whole(shape))
            for o, shape in zip(group.outputs, shapes, strict=True)
        )
        loops = {count: name for count, (name, _) in self._along.items()}
        return ContractionPlan(
            self._supplier,
            self._sorts,
            self._dtype,
            self._accumulated,
            loops,
            sums,
            beside,
            across,
            stores,
            self._is_turned,
        )

    def _spread(self, flat: Dim, sort: Sort) -> dict[str, Dim]:
        index = self._places.relocated((flat,), (sort.count,), sort.sizes)
        return dict(zip(sort.letters, index, strict=True))

    def _sum(self, made: Product) -> Sum:
        sorts = _sorts(made)
        count = sorts.summed.count
        if count not in self._along:
            name = f"k{len(self._along) + 1}" if self._along else "k"
            self._along[count] = (name, self._places.coordinate(name, count))
        name, flat = self._along[count]
        at = dict(zip(made.result, self._index, strict=True)) | self._spread(flat, sorts.summed)
        order = sorts.order[::-1] if self._is_turned else sorts.order
        first, second = (self._operand(made, i, at) for i in order)
        return Sum(name, (first, second), self._results[made.var])

    def _operand(self, made: Product, number: int, at: dict[str, Dim]) -> Term:
        atom = made.operands[number]
        pairs = zip(made.subscripts[number], shape_of(type_of(atom)), strict=True)
        term = self._supplier.element(atom, [ZERO if s == ONE else at[c] for c, s in pairs])
        return self._supplier.elements(self._dtype, ()).cast(term, widened(self._dtype))

    def _sum_at(self, var: Var, index: tuple[Dim, ...]) -> Term:
        if tuple(map(self._places.simplified, index)) != self._index:
            raise NoKernel("another element of the sum is used than the one at hand")
        return self._results[var]

    def _place(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return where a value of a shape has its element for the place at hand."""
        return self._domain.place(self._places, self._index, shape)

    def _place_beside(self, reduced: Reduced) -> tuple[Dim, ...]:
        """Return where a reduction beside the sums has its element for the place in the loop."""
        own = reduced.domain
        count = product(own.along)
        _, flat = self._along[count]
        return own.at(
            self._places.relocated(self._kept, self._domain.kept, own.kept),
            self._places.relocated((flat,), (count,), own.along),
        )

    def _reduction(self, reduced: Reduced, at: Sequence[Dim]) -> Reduction:
        dtype = combining_dtype(reduced)
        term = self._supplier.element(reduced.operand, at)
        operand = self._supplier.elements(dtype, ()).cast(term, dtype)
        made = result_terms(self._supplier.terms, reduced, len(self._results) + len(self._reduced))
        found = self._reduced[reduced.var] = Reduction(reduced, operand, *made)
        return found

    def _reduced_at(self, var: Var, index: tuple[Dim, ...]) -> Term | tuple[Term, ...]:
        found = self._reduced[var]
        shape = shape_of(first_of(type_of(found.reduced.call)))
        at = self._places.simplified(linear(index, shape))
        if at != self._places.simplified(linear(self._kept, self._domain.kept)):
            raise NoKernel(f"`{var.name}` is needed of another row than the one at hand")
        first, *others = found.results
        return (first, *others) if others else first


def _accumulated(made: Product, dtype: DType) -> DType:
    """Return the dtype of sums of products."""
    if not is_float(dtype):
        return dtype_of(type_of(made.var))
    return float64 if dtype == float64 else float32
