"""Type arguments that inference cannot find again: Python has no place to write them."""

from __future__ import annotations

from ..ir.dims import Dim, DimVar
from ..ir.expr import Function, type_of
from ..ir.types import TypeVar, dims, subtypes


def untold(function: Function) -> tuple[str, ...]:
    """Return the type parameters that the types of a function's parameters do not determine.

    A size is told by a dim that is linear in it and otherwise holds what is told; `N*M` tells
    neither of two sizes.
    """
    types = [type_of(p) for p in function.params]
    told = {part.name for ty in types for part in subtypes(ty) if isinstance(part, TypeVar)}
    shown = [d for ty in types for d in dims(ty)]
    wanted = [p.name for p in function.type_params]
    is_new = True
    while is_new:
        found = {n for n in wanted if n not in told and any(_tells(d, n, told) for d in shown)}
        told |= found
        is_new = bool(found)
    return tuple(n for n in wanted if n not in told)


def _tells(dim: Dim, name: str, told: set[str]) -> bool:
    """Return whether an equation for a dim gives a size, when others are known."""
    if not dim.names() - {name} <= told or name not in dim.names():
        return False
    with_it = [(m, c) for m, c in dim.terms if any(name in Dim.atom(a).names() for a in m)]
    ((monomial, coefficient), *rest) = with_it
    return not rest and monomial == (DimVar(name),) and abs(coefficient) == 1
