"""The plans of passes over places: pointwise passes, updates, and the two halves of a scatter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.declaration.elements import Place
from ...ir.dims import ONE, Dim, DimOp, product
from ...ir.expr import type_of
from ..calling import Layout, NoKernel
from ..groups import Group, Scattered
from ..operands import LEAST_UNIT
from ..places import steps_of
from ..reading import dtype_of, shape_of
from .supplier import Store, TermSupplier
from .terms import Access, Term

FLAT: Final = "%i"
OUTER: Final = "%outer"
ACROSS: Final = "%across"
ALONG: Final = "%along"
"""Coordinates; no size has such a name."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlacesPlan:
    """A pass over places: the coordinates of a place, the sizes of their dims, and what is stored
    for each place, or added to what is there."""

    supplier: TermSupplier
    index: tuple[Dim, ...]
    sizes: tuple[Dim, ...]
    stores: tuple[Store, ...]

    @property
    def count(self) -> Dim:
        """The number of places."""
        return product(self.sizes)

    @property
    def roots(self) -> list[Term]:
        """The terms that are stored."""
        return [s.term for s in self.stores]

    @property
    def offsets(self) -> list[Dim]:
        """The places in operands that are read."""
        needed = self.supplier.terms.needed(self.roots)
        return [t.detail.offset for t in needed if isinstance(t.detail, Access)]


def pointwise_plan(group: Group, layout: Layout) -> PlacesPlan:
    """Return the plan of a pointwise pass, whose places are numbered row by row."""
    return places_plan(group, layout, (FLAT,), (product(group.shape),))


def places_plan(
    group: Group, layout: Layout, names: Sequence[str], sizes: tuple[Dim, ...]
) -> PlacesPlan:
    """Return the plan of a pointwise pass whose places have coordinates with these names, of dims
    of these sizes: together as many places as the results have."""
    supplier = TermSupplier(group.function, layout, {})
    places = supplier.places
    index = tuple(places.coordinate(n, s) for n, s in zip(names, sizes, strict=True))
    stores = tuple(
        supplier.store(o, places.relocated(index, sizes, shape_of(type_of(o.value))))
        for o in group.outputs
    )
    return PlacesPlan(supplier, index, sizes, stores)


Rectangles: TypeAlias = tuple[Dim, Dim, Dim]
"""The places of a result, row by row, as a product: how many rectangles lie behind each other, how
many places there are along the operands across, and along the results."""


def rectangles_of(group: Group, layout: Layout) -> Rectangles | None:
    """Return the rectangles of a pointwise pass, some of whose operands lie across its results, as
    in `x + y.T`: as long as such an operand lies in one piece. None where none does."""
    shape = tuple(d for d in group.shape if d != ONE)
    names = [f"%{axis}" for axis in range(len(shape))]
    across = _axis_across(places_plan(group, layout, names, shape), names)
    if across is None:
        return None
    behind = product(shape[across + 1 :])
    for first in range(across + 1):
        found = product(shape[:first]), product(shape[first : across + 1]), behind
        if first == across or not _is_taken_apart(crossing_plan(group, layout, found)):
            return None if any(d.constant in range(LEAST_UNIT) for d in found[1:]) else found
    return None


def crossing_plan(group: Group, layout: Layout, rectangles: Rectangles) -> PlacesPlan:
    """Return the plan of a pointwise pass that goes over rectangles of places."""
    return places_plan(group, layout, (OUTER, ACROSS, ALONG), rectangles)


def _axis_across(plan: PlacesPlan, names: Sequence[str]) -> int | None:
    """Return the dim, not the last, that the elements of most operands lie along which do not lie
    along the last; its coordinates have these names."""
    found: Counter[int] = Counter()
    last = len(names) - 1
    for offset in plan.offsets:
        steps = {names.index(n): step for n, step in steps_of(offset) if n in names}
        axes = [axis for axis, step in steps.items() if step == ONE]
        if last in steps and axes and last not in axes:
            found[axes[0]] += 1
    return max(found, key=lambda axis: (found[axis], axis), default=None)


def _is_taken_apart(plan: PlacesPlan) -> bool:
    """Return whether an operand is read at quotients or remainders of the places across."""
    atoms = (a for offset in plan.offsets for monomial, _ in offset.terms for a in monomial)
    return any(isinstance(a, DimOp) and ACROSS in Dim.atom(a).names() for a in atoms)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UpdatesPlan:
    """Passes that share only the launch: for each output its coordinate, how many places it has,
    and what is stored."""

    supplier: TermSupplier
    passes: tuple[tuple[str, Dim, Store], ...]

    def read_again(self, store: Store) -> list[Term]:
        """Return the loads of the one element of an operand that a store overwrites: a value that
        no place of the pass may see changed."""
        terms = self.supplier.terms
        loads = (t for t in terms.needed([store.term]) if isinstance(t.detail, Access))
        return [
            t
            for t in loads
            if t.detail.operand == store.target.overwrites and not t.detail.offset.names()
        ]


def updates_plan(group: Group, layout: Layout) -> UpdatesPlan:
    """Return the plan of passes over different numbers of places."""
    supplier = TermSupplier(group.function, layout, {})
    places = supplier.places
    shapes = [shape_of(type_of(o.value)) for o in group.outputs]
    passes: list[tuple[str, Dim, Store]] = []
    for number, (output, shape) in enumerate(zip(group.outputs, shapes, strict=True)):
        name, count = f"i{number}", product(shape)
        flat = places.coordinate(name, count)
        store = supplier.store(output, places.relocated((flat,), (count,), shape))
        passes.append((name, count, store))
    return UpdatesPlan(supplier, tuple(passes))


def scatter_start(group: Group, layout: Layout) -> PlacesPlan | None:
    """Return the plan of copying the operand that the result of a scatter starts as; None where it
    starts as zeros."""
    found = _scattered(group)
    if found.start is None:
        return None
    supplier = TermSupplier(group.function, layout, {})
    shape = shape_of(type_of(found.var))
    count = product(shape)
    flat = supplier.places.coordinate(FLAT, count)
    index = supplier.places.relocated((flat,), (count,), shape)
    store = supplier.stored(group.outputs[0], index, supplier.element(found.start, index))
    return PlacesPlan(supplier, (flat,), (count,), (store,))


def places_added(group: Group) -> tuple[Dim, ...]:
    """Return the shape of what a scatter adds or stores."""
    return _scattered(group).over


def scatter_additions(
    group: Group,
    layout: Layout,
    names: Sequence[str] = (FLAT,),
    sizes: tuple[Dim, ...] | None = None,
) -> PlacesPlan:
    """Return the plan of a scatter's additions or stores, at places that are computed; `names` and
    `sizes` are as those of `places_plan`, one coordinate for all if no sizes are given. Raises
    NoKernel where the places are not known one by one."""
    found = _scattered(group)
    total = type_of(found.total)
    dtype, shape = dtype_of(total), found.over
    supplier = TermSupplier(group.function, layout, {})
    places, call = supplier.places, found.call
    sizes = (product(shape),) if sizes is None else sizes
    own = tuple(places.coordinate(n, s) for n, s in zip(names, sizes, strict=True))
    index = places.relocated(own, sizes, shape)
    elements = supplier.elements(dtype, index)
    operands = supplier.reader.operands(call)
    added = found.lowering.body(elements, Place(index, shape), *operands, *call.attrs.values())
    if added is None:
        raise NoKernel("its places are not known one by one")
    at, value = added
    term = elements.cast(value, dtype)
    store = supplier.stored(group.outputs[0], [places.simplified(d) for d in at], term)
    term = supplier.checked(elements, term, None, stored_at=store.at)
    target = replace(store.target, starts_zero=found.lowering.base is None)
    store = replace(store, target=target, term=term)
    return PlacesPlan(supplier, own, sizes, (store,))


def _scattered(group: Group) -> Scattered:
    assert group.scattered is not None
    return group.scattered
