"""The plan of a pass with reductions, as terms: the reductions by stages, and what is stored.

The kept dims of the domain are numbered by one coordinate, the reduced ones by another. A *stage*
is the reductions that need no result of a later one, and only of those before, or of one of the
same stage that they are made online with (`reductions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.dims import ONE, Dim, product
from ...ir.expr import Var, type_of
from ...ir.traverse import dependencies_first
from ..calling import Layout, NoKernel
from ..groups import Domain, Group, Output, Reduced
from ..places import linear, steps_of
from ..reading import first_of, shape_of
from .reductions import Deviations, Reduction, combining_dtype, online_of, result_terms
from .supplier import Store, TermSupplier
from .terms import Access, Term

KEPT: Final = "%row"
REDUCED: Final = "%along"
"""The coordinates; no size has such a name."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """An output: whether it has an element for each place of the domain, and after how many stages
    it is known."""

    store: Store
    is_whole: bool
    stage: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """The computation of a pass, as terms: the reductions of each stage, and what is stored."""

    supplier: TermSupplier
    kept: Dim
    reduced: Dim
    is_column: bool
    """Whether operands lie along the kept dims."""
    stages: tuple[tuple[Reduction, ...], ...]
    stored: tuple[Stored, ...]

    @property
    def passes(self) -> int:
        """How many times a row is gone through if it does not stay in registers."""
        last = max((s.stage for s in self.stored if s.is_whole), default=-1)
        return max(len(self.stages), last + 1)

    def reductions(self, stage: int) -> tuple[Reduction, ...]:
        """Return the reductions of a stage; there are none after the last."""
        return self.stages[stage] if stage < len(self.stages) else ()

    def stored_in(self, stage: int) -> tuple[Stored, ...]:
        """Return the stores, for each place, of values known after so many stages."""
        return tuple(s for s in self.stored if s.is_whole and s.stage == stage)

    @property
    def stored_for_rows(self) -> tuple[Stored, ...]:
        """The values that are stored once for each row."""
        return tuple(s for s in self.stored if not s.is_whole)

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores of all outputs."""
        return tuple(s.store for s in self.stored)

    @property
    def offsets(self) -> list[Dim]:
        """Where in operands and results it reads and stores."""
        loads = [t.detail for t in self.supplier.terms.needed(self.roots)]
        read = [access.offset for access in loads if isinstance(access, Access)]
        return read + [s.at for s in self.stores]

    @property
    def roots(self) -> list[Term]:
        """The terms that are asked for."""
        operands = [r.operand for stage in self.stages for r in stage]
        return [*operands, *(s.term for s in self.stores)]


Coordinates: TypeAlias = tuple[tuple[str, Dim], ...]
"""Names of coordinates, and the sizes of the dims that they are of."""


def row_plan(
    group: Group,
    layout: Layout,
    kept: Coordinates | None = None,
    reduced: Coordinates | None = None,
) -> RowPlan:
    """Return the plan of a pass with reductions. `kept` and `reduced` are coordinates that number
    the kept and the reduced dims row by row, one each if there are none. Raises NoKernel where a
    row needs the result of a reduction of another row."""
    assert group.domain is not None
    return _RowReader(group, layout, group.domain, kept, reduced).plan()


@final
class _RowReader:
    """Reads a pass: its reductions are leaves, whose operands are read in turn."""

    def __init__(
        self,
        group: Group,
        layout: Layout,
        domain: Domain,
        kept: Coordinates | None,
        reduced: Coordinates | None,
    ) -> None:
        self._group: Final = group
        self._domain: Final = domain
        leaves = {r.var: self._result for r in group.reductions}
        self._supplier: Final = TermSupplier(group.function, layout, leaves)
        self._kept_size: Final = product(domain.kept)
        self._reduced_size: Final = product(domain.along)
        rows = ((KEPT, self._kept_size),) if kept is None else kept
        along = ((REDUCED, self._reduced_size),) if reduced is None else reduced
        self._row, kept_index = self._spread(rows, domain.kept)
        _, reduced_index = self._spread(along, domain.along)
        self._index: Final = domain.at(kept_index, reduced_index)
        self._made: Final[dict[Var, Reduction]] = {}
        self._stages: Final[dict[Term, int]] = {}

    def _spread(
        self, coordinates: Coordinates, shape: Sequence[Dim]
    ) -> tuple[Dim, tuple[Dim, ...]]:
        """Return the number that new coordinates give a place, and its index in a shape."""
        places = self._supplier.places
        index = [places.coordinate(name, size) for name, size in coordinates]
        sizes = [size for _, size in coordinates]
        return places.simplified(linear(index, sizes)), places.relocated(index, sizes, shape)

    def plan(self) -> RowPlan:
        """Return the pass."""
        for reduced in self._group.reductions:
            self._made[reduced.var] = self._reduction(reduced)
        stored = tuple(self._store(o) for o in self._group.outputs)
        count = 1 + max((self._stage_of(r) for r in self._made.values()), default=-1)
        stages = tuple(
            tuple(r for r in self._made.values() if self._stage_of(r) == s) for s in range(count)
        )
        plan = RowPlan(self._supplier, self._kept_size, self._reduced_size, False, stages, stored)
        return replace(plan, is_column=self._is_column(plan))

    def _is_column(self, plan: RowPlan) -> bool:
        """Return whether some operand or result lies along the kept dims, one element behind the
        other; by the dims of the domain where no access shows it."""
        lie: set[str] = set()
        for offset in plan.offsets:
            steps = {name: step for name, step in steps_of(offset) if name in (KEPT, REDUCED)}
            if len(steps) == 2:
                lie |= {name for name, step in steps.items() if step == ONE}
        if lie:
            return KEPT in lie
        merged = self._domain.merged
        return bool(merged) and not merged[-1][1]

    def _place(self, shape: Sequence[Dim], *, is_whole: bool) -> tuple[Dim, ...]:
        places = self._supplier.places
        if is_whole:
            return places.relocated(self._index, self._domain.shape, shape)
        return places.relocated((self._row,), (self._kept_size,), shape)

    def _reduction(self, reduced: Reduced) -> Reduction:
        shape = shape_of(type_of(reduced.operand))
        operand = self._supplier.element(reduced.operand, self._place(shape, is_whole=True))
        dtype = combining_dtype(reduced)
        operand = self._supplier.elements(dtype, ()).cast(operand, dtype)
        value, position = result_terms(self._supplier.terms, reduced, len(self._made))
        online = online_of(reduced.combine, operand, self._leaders(), self._stage)
        found = Reduction(reduced, operand, value, position, online)
        after = operand if online is None else online.leader.operand
        for term in found.results:
            self._stages[term] = self._stage(after) + 1
        return found

    def _leaders(self) -> list[Reduction]:
        """Return the reductions that another may be made online with."""
        made = self._made.values()
        shifted = [r.online.leader for r in made if isinstance(r.online, Deviations)]
        return [r for r in made if r.online is None and r not in shifted]

    def _result(self, var: Var, index: tuple[Dim, ...]) -> Term | tuple[Term, ...]:
        """Return the result of a reduction for the current row, the only one that is available."""
        reduction = self._made[var]
        ty = type_of(reduction.reduced.call)
        first = first_of(ty)
        at = self._supplier.places.simplified(linear(index, shape_of(first)))
        if at != self._row:
            raise NoKernel(f"`{var.name}` is needed of another row than the one at hand")
        first, *others = reduction.results
        return (first, *others) if others else first

    def _store(self, output: Output) -> Stored:
        shape = shape_of(type_of(output.value))
        is_whole = product(shape) != self._kept_size
        store = self._supplier.store(output, self._place(shape, is_whole=is_whole))
        return Stored(store, is_whole, self._stage(store.term))

    def _stage_of(self, reduction: Reduction) -> int:
        return self._stages[reduction.results[0]] - 1

    def _stage(self, term: Term) -> int:
        """Return after how many stages a term is known."""
        before = self._supplier.terms.before
        for current in dependencies_first(term, before, self._stages.__contains__):
            self._stages[current] = max((self._stages[t] for t in before(current)), default=0)
        return self._stages[term]
