"""What fusion asks of a value: which elements of what it is made of, at the places of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

from ...ir.dims import Dim
from ...ir.expr import Call, Expr, Var, type_of
from ..contraction_axes import Product
from ..groups import Domain, Reduced, Scattered
from ..reading import Reader, first_of, shape_of
from ..recording import Recording, read_scatter
from .nodes import Item, Role

FUNCTION_COST: Final = 8
"""How many operations an exponential or the like counts for."""


@final
@dataclass(frozen=True, slots=True)
class Look:
    """What the element of a value at the places of a domain is made of."""

    domain: Domain
    own: dict[Var, bool]
    """For each leaf, whether it is read only at the place itself."""
    reads: int
    work: int
    functions: int
    calls: int


def own_domain(item: Item) -> Domain:
    """Return the places that a value goes over if it is alone."""
    match item.special, item.value:
        case Reduced() as found, _:
            return found.domain
        case _, Call(args=(target, _)) if item.role is Role.OVERWRITE:
            return Domain(shape_of(type_of(target)), ())
        case _:
            return Domain(shape_of(first_of(type_of(item.var))), ())


def look_at(
    item: Item, domain: Domain, bindings: Mapping[Var, Expr], is_leaf: Callable[[Var], bool]
) -> Look:
    """Read the element of a value for each place of a domain."""
    record = Recording(is_leaf=is_leaf)
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
    return Look(domain, own, len(record.reads), work, functions, max(1, len(record.work)))


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
