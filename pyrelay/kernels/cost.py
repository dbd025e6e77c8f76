"""The cost of a kernel, found by reading it: bytes moved and operations, as dims.

A leaf is read once for each element that some place asks for, however many places do: what is near
is in the cache. A value that is computed for fewer places than the loop has counts for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never, final

from ..dataclass import dataclass
from ..ir.bounds import at_most, estimate
from ..ir.dims import ONE, ZERO, Dim, product, sum_of
from ..ir.expr import Expr, Var, type_of
from ..ir.types import SizeType, Type
from .groups import Domain, Group, Kind
from .reading import Reader, bindings_of, dtype_of, shape_of, types_of_results
from .recording import FOUND, Recording, read_scatter


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a kernel."""

    read: Mapping[Var, Dim]
    """For each parameter, how many of its elements are read."""
    written: Dim
    """Bytes that are stored."""
    operations: Dim
    """Additions, multiplications, functions and the like, each counted as one."""

    @property
    def read_bytes(self) -> Dim:
        """The bytes that are read."""
        return sum_of(n * bytes_of(type_of(v)) for v, n in self.read.items())

    @property
    def bytes(self) -> Dim:
        """The bytes that are moved."""
        return self.read_bytes + self.written


def bytes_of(ty: Type) -> int:
    """Return the bytes of one element of a tensor or integer."""
    return dtype_of(ty).bits // 8


def size_of(ty: Type) -> Dim:
    """Return the bytes that a tensor or integer fills."""
    return product(shape_of(ty)) * bytes_of(ty)


def cost_of(group: Group) -> Cost:
    """Return the cost of a kernel."""
    if group.kind is Kind.CALL:
        return _cost_of_call(group)
    record = Recording(is_leaf=group.leaves.__contains__)
    reader = Reader(bindings_of(group.function.body), record)
    repeated = _read(group, reader, record)
    counts: dict[Var, list[Dim]] = {}
    for var, index in record.reads:
        if var not in group.leaves and not isinstance(var.ty, SizeType):
            counts.setdefault(var, []).append(_places(index, record, repeated))
    read = {v: _least(sum_of(n), product(shape_of(type_of(v)))) for v, n in counts.items()}
    work = sum_of(
        _places(w.index, record, repeated) * (w.elements.operations + w.elements.functions)
        for w in record.work
    )
    written = sum_of(size_of(type_of(o.value)) for o in group.outputs)
    return Cost(read, written, work + _combined(group))


def _cost_of_call(group: Group) -> Cost:
    """Return the cost of a call of an operator: each operand is read once, and each element of one
    is combined with those of the next."""
    read = {p: product(shape_of(type_of(p))) for p in group.function.params}
    results = types_of_results(type_of(group.function.body))
    return Cost(read, sum_of(map(size_of, results)), sum_of(read.values()))


def _read(group: Group, reader: Reader, record: Recording) -> Dim:
    """Read all that a kernel computes; return the number of places that it goes over."""
    places = record.places
    match group.kind:
        case Kind.POINTWISE:
            index = places.index("i", group.shape)
            for output in group.outputs:
                shape = shape_of(type_of(output.value))
                reader.element(output.value, places.relocated(index, group.shape, shape))
            return product(group.shape)
        case Kind.UPDATES:
            for number, output in enumerate(group.outputs):
                shape = shape_of(type_of(output.value))
                reader.element(output.value, places.index(f"i{number}_", shape))
            return sum_of(product(shape_of(type_of(o.value))) for o in group.outputs)
        case Kind.ROWS:
            assert group.domain is not None
            index = places.index("i", group.domain.shape)
            values: list[Expr] = [r.operand for r in group.reductions]
            for value in (*values, *(o.value for o in group.outputs)):
                reader.element(value, group.domain.place(places, index, shape_of(type_of(value))))
            return product(group.domain.shape)
        case Kind.CONTRACTION:
            return _read_products(group, reader, record)
        case Kind.SCATTER:
            assert group.scattered is not None
            found = group.scattered
            read_scatter(found, reader, record)
            return product(found.over)
        case Kind.CALL:
            raise AssertionError(group)  # `cost_of` does not read it
        case other:
            assert_never(other)


def _read_products(group: Group, reader: Reader, record: Recording) -> Dim:
    places = record.places
    shape = shape_of(type_of(group.products[0].var))
    index = places.index("i", shape)
    for made in group.products:
        at = dict(zip(made.result, index, strict=True))
        # Sums over as many places read these together.
        summed = {c: made.sizes[c] for c in made.summed}
        count = product(tuple(summed.values()))
        flat = places.coordinate(f"k{count}_", count)
        at |= zip(summed, places.relocated((flat,), (count,), tuple(summed.values())), strict=True)
        for operand, letters in zip(made.operands, made.subscripts, strict=True):
            pairs = zip(letters, shape_of(type_of(operand)), strict=True)
            reader.element(operand, tuple(ZERO if s == ONE else at[n] for n, s in pairs))
    domain = group.domain or Domain(shape, ())
    for value in (*(r.operand for r in group.reductions), *(o.value for o in group.outputs)):
        reader.element(value, domain.place(places, index, shape_of(type_of(value))))
    kept = tuple(c for i, c in enumerate(index) if i not in domain.reduced)
    for found in group.beside:
        own = found.domain
        count = product(own.along)
        flat = places.coordinate(f"k{count}_", count)
        at = own.at(
            places.relocated(kept, domain.kept, own.kept),
            places.relocated((flat,), (count,), own.along),
        )
        reader.element(found.operand, at)
    return sum_of(product(tuple(p.sizes.values())) for p in group.products)


def _combined(group: Group) -> Dim:
    """Return how many elements are combined by reductions, sums of products and additions."""
    reductions = (*group.reductions, *group.beside)
    total = sum_of(product(shape_of(type_of(r.operand))) for r in reductions)
    total = total + 2 * sum_of(product(tuple(p.sizes.values())) for p in group.products)
    if group.scattered is not None and group.scattered.lowering.adds:
        total = total + product(group.scattered.over)
    return total


def _places(index: Iterable[Dim], record: Recording, all_places: Dim) -> Dim:
    """Return how many places a value is computed for, or read at: one for each value of the
    coordinates it depends on, all of them where it is found by what the run computes."""
    names = dict.fromkeys(a for d in index for a in sorted(d.names()))
    sizes = {name: record.places.size(name) for name in names}
    if any(name.startswith(FOUND) for name in names):
        return all_places
    return product(tuple(s for s in sizes.values() if s is not None))


def _least(count: Dim, size: Dim) -> Dim:
    """Return the smaller of two counts, by estimate where it is not provable."""
    if at_most(count, size):
        return count
    return size if at_most(size, count) or estimate(size) <= estimate(count) else count
