"""Accesses of a value: which elements it is made of at the places of a loop, and whether to compute
it again wherever it is used, or once, and store it.

Stored, a value costs a write and a read for each user; computed again, each user reads what it is
made of, and repeats its operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import Call, Expr, Var, type_of
from ...ir.types import TupleType
from ..contraction_axes import Product
from ..groups import Domain, Reduced, Scattered
from ..reading import Reader, first_of, shape_of
from ..recording import Recording, read_scatter
from .nodes import Item, Role, Uses, elements, size_in_bytes

FUNCTION_COST: Final = 8
"""How many operations an exponential or the like counts for."""


@final
@dataclass(frozen=True, slots=True)
class Look:
    """The reads behind the element of a value at the places of a domain."""

    domain: Domain
    own: dict[Var, bool]
    """For each leaf, whether it is read only at the place itself."""
    reads: int
    work: int
    functions: int
    calls: int
    may_fail: bool


def own_domain(item: Item) -> Domain:
    """Return the places that a value goes over if it is alone."""
    match item.special, item.value:
        case Reduced() as found, _:
            return found.domain
        case Scattered() as found, _ if item.role is Role.ROWS:
            return Domain(found.over, ())
        case _, Call(args=(target, _)) if item.role is Role.OVERWRITE:
            return Domain(shape_of(type_of(target)), ())
        case _:
            return Domain(shape_of(first_of(type_of(item.var))), ())


def look_at(
    item: Item,
    domain: Domain,
    bindings: Mapping[Var, Expr],
    is_leaf: Callable[[Var], bool],
    known_places: Mapping[Var, Dim],
) -> Look:
    """Read the element of a value for each place of a domain; the elements of the variables
    `known_places` are places of a dim of a size."""
    record = Recording(is_leaf=is_leaf, known_places=known_places)
    places = record.places
    index = places.index("i", domain.shape)
    _read_element(item, Reader(bindings, record), record, domain, index)
    own: dict[Var, bool] = {}
    for leaf, at in record.reads:
        shape = shape_of(type_of(leaf))
        here = domain.covers(shape) and at == domain.place(places, index, shape)
        own[leaf] = own.get(leaf, True) and here
    functions = sum(w.elements.functions for w in record.work)
    work = sum(w.elements.operations for w in record.work) + FUNCTION_COST * functions
    calls = max(1, len(record.work))
    return Look(domain, own, len(record.reads), work, functions, calls, record.may_fail)


def _read_element(
    item: Item, reader: Reader, record: Recording, domain: Domain, index: tuple[Dim, ...]
) -> None:
    """Read what the element of a value is made of at a place of a domain; of a sum of products or a
    scatter, what an element of each operand is made of."""
    places = record.places
    match item.special, item.value:
        case Reduced(operand=operand), _:
            reader.element(operand, domain.place(places, index, shape_of(type_of(operand))))
        case Product(operands=operands), _:
            for number, operand in enumerate(operands):
                reader.element(operand, places.index(f"o{number}_", shape_of(type_of(operand))))
        case Scattered() as found, _:
            read_scatter(found, reader, record)
        case _, Call(args=(_, value)) if item.role is Role.OVERWRITE:
            reader.element(value, domain.place(places, index, shape_of(type_of(value))))
        case _:
            shape = shape_of(first_of(type_of(item.var)))
            reader.element(item.var, domain.place(places, index, shape))


MOST_REPEATED: Final = 8
"""A value that is computed wherever it is used takes at most this many calls, and reads."""
OPERATIONS_PER_BYTE: Final = 8
"""How many operations may be repeated to save moving one byte."""
FREE_OPERATIONS: Final = 1 << 24
"""How many operations take less time than the start of a kernel."""


def is_cheaper_again(
    item: Item, look: Look, uses: Mapping[Var, Uses], is_stored: Callable[[Var], bool]
) -> bool:
    """Return whether a value is better computed again wherever it is used, by the bytes that are
    moved and the operations that are repeated. `is_stored` returns whether an operand
    is in memory in any case."""
    used, ty = uses[item.var], type_of(item.var)
    if item.role is not Role.ELEMENT or used.outside or isinstance(ty, TupleType):
        return False
    if look.calls > MOST_REPEATED or look.reads > MOST_REPEATED:
        return False
    if look.reads <= 1 and not look.work:
        return True  # it only moves elements, as a view does
    if used.contracted and (look.functions or look.work > 2):
        return False
    size, count = size_in_bytes(ty), max(1, used.count)
    made_of = [leaf for leaf in look.own if not is_stored(leaf)]
    if any(uses[v].count == 1 and size <= size_in_bytes(type_of(v)) for v in made_of):
        return False  # in its place would be stored what it alone uses, which is no smaller
    most = size * look.reads
    read = sum(min(most, size_in_bytes(type_of(leaf))) for leaf in look.own)
    stored = sum(size_in_bytes(type_of(v)) for v in made_of)
    saved = (count + 1) * size - (count - 1) * read - stored
    spread = max(1, used.largest // max(1, elements(ty)))
    again = (count * spread - 1) * elements(ty) * look.work
    return saved >= 0 and again <= saved * OPERATIONS_PER_BYTE + FREE_OPERATIONS
