"""What a local function takes from the function around it: variables and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.expr import Call, Function, Var
from ...ir.traverse import bound_vars, free_vars, post_order
from ...ir.types import SizeType, TensorType, Type, TypeVar, subtypes
from ..retype import dims_in_attrs, types_in
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


def sizes_needed(function: Function) -> tuple[str, ...]:
    """Give the sizes whose value a function needs but does not find in its own variables."""
    needed: dict[str, None] = {}
    present: set[str] = set()
    for node in post_order(function):
        if isinstance(node, Call):
            needed |= dict.fromkeys(names_in(dims_in_attrs(node.attrs)))
        for var in bound_vars(node):
            present.update(() if var.ty is None else sizes_given(var.ty))
    return tuple(n for n in needed if n not in present)


def sizes_given(ty: Type) -> Iterator[str]:
    """Give the names of the sizes that can be read off a value of a type at run time."""
    dims = ty.shape if isinstance(ty, TensorType) else ()
    dims = (ty.dim,) if isinstance(ty, SizeType) else dims
    yield from (d.name for d in dims if d.name is not None)
