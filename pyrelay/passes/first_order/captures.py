"""What a local function takes from the function around it: variables and sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dims import Dim
from ...ir.expr import Function, Var
from ...ir.traverse import bound_vars, free_vars, post_order
from ...ir.types import Type, TypeVar, subtypes
from ..retype import types_in
from ..sizes import needed, shown, uncovered
from .types import names_in


def captured(functions: Sequence[Function], group: frozenset[Var]) -> tuple[Var, ...]:
    """Give the variables that functions use from outside, except those of their own group."""
    found: dict[Var, None] = {}
    for function in functions:
        found |= dict.fromkeys(free_vars(function))
    return tuple(v for v in found if v not in group)


def sizes_in(function: Function) -> tuple[str, ...]:
    """Give the names of all sizes that a function mentions, in order."""
    found: dict[str, None] = {}
    for node in post_order(function):
        found |= dict.fromkeys(names_in(types_in(node)))
    return tuple(found)


def mentions_type_variables(function: Function) -> bool:
    """Tell whether a function mentions a type variable."""
    return any(
        isinstance(part, TypeVar)
        for node in post_order(function)
        for ty in types_in(node)
        if isinstance(ty, Type)
        for part in subtypes(ty)
    )


def sizes_needed(function: Function) -> tuple[Dim, ...]:
    """Give the dims whose value a function needs but does not find in its own variables."""
    wanted: dict[Dim, None] = {}
    present: set[Dim] = set()
    for node in post_order(function):
        wanted |= dict.fromkeys(needed(node))
        for var in bound_vars(node):
            present.update(shown(var.ty))
    return tuple(d for d in wanted if any(uncovered(d, present)))
