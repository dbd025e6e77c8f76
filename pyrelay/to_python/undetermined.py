"""Type arguments that inference cannot find again: Python has no place to write them."""

from __future__ import annotations

from ..ir.dims import Dim, DimVar
from ..ir.expr import Function, type_of
from ..ir.types import TypeVar, dims, subtypes


def undetermined(function: Function) -> tuple[str, ...]:
    """Return the type parameters that the types of a function's parameters do not determine.

    A size is determined by a dim that is linear in it and has no other undetermined size; `N*M`
    determines neither.
    """
    types = [type_of(p) for p in function.params]
    determined = {part.name for ty in types for part in subtypes(ty) if isinstance(part, TypeVar)}
    shown = [d for ty in types for d in dims(ty)]
    wanted = [p.name for p in function.type_params]
    is_new = True
    while is_new:
        found = {
            n
            for n in wanted
            if n not in determined and any(_determines(d, n, determined) for d in shown)
        }
        determined |= found
        is_new = bool(found)
    return tuple(n for n in wanted if n not in determined)


def _determines(dim: Dim, name: str, determined: set[str]) -> bool:
    """Return whether an equation for a dim gives a size, when others are known."""
    if not dim.names() - {name} <= determined or name not in dim.names():
        return False
    with_it = [(m, c) for m, c in dim.terms if any(name in Dim.atom(a).names() for a in m)]
    ((monomial, coefficient), *rest) = with_it
    return not rest and monomial == (DimVar(name),) and abs(coefficient) == 1
