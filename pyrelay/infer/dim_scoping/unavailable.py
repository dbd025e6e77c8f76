"""Sizes that a function uses and whose values cannot be found while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...analysis.dim_availability import dims_in_attrs
from ...diagnostics.catalogue.data import SizeNotShown
from ...diagnostics.catalogue.model import OpenParameter
from ...diagnostics.diagnostic import Problem
from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Function, Var
from ...ir.traverse import post_order
from ...ir.types import SizeType, Substitution, dim_names
from ...operators.composite.model import initial
from ..solver import Solver


def undetermined_sizes(functions: Iterable[Function], solver: Solver) -> list[Problem]:
    """Return a mistake for each size in the attributes of a call that no parameter of its function
    mentions and that the running program does not find."""
    found: dict[tuple[str, int], Problem] = {}
    for function in functions:
        determined = shown_by(function)
        for node in post_order(function.body):
            if not isinstance(node, Call) or not node.attrs:
                continue
            if node.callee is initial and _is_open(node.attrs["size"], determined, solver):
                place = node.attrs["path"], id(function)
                found.setdefault(place, OpenParameter(node.span, node.attrs["path"]))
                continue
            for name in _names(node.attrs):
                if name not in determined and not solver.is_existential(name):
                    place = name, id(function)
                    found.setdefault(place, SizeNotShown(node.span, name, "", "", node.span))
    return list(found.values())


def shown_by(function: Function) -> frozenset[str]:
    """Return the sizes that the parameters of a function mention."""
    return frozenset[str]().union(*(dim_names(p.ty) for p in function.params if p.ty))


def with_bound_sizes(
    own: Substitution, bound: Iterable[Var], shown: frozenset[str], solver: Solver
) -> Substitution:
    """Return the values of the names of sizes after a binding. Where no parameter shows `N`, `%n:
    Size[N]` is a name of the size that the variable is bound to, and `%x: Tensor[(N,), float32]` of
    that of its tensor, unless `N` has a value already; the running program finds both."""
    dims = own.dims
    for var in bound:
        names = dim_names(var.ty) - shown if var.ty else frozenset[str]()
        if not isinstance(var.ty, SizeType) or var.ty.dim.name is None:
            names -= dims.keys()
        if names:
            dims = {**dims, **{name: solver.fresh_dim_hole() for name in sorted(names)}}
    return own if dims is own.dims else Substitution(dims, own.types)


def _is_open(size: tuple[Dim, ...] | None, determined: frozenset[str], solver: Solver) -> bool:
    """Return whether nothing says the shape of a parameter that is made here."""
    if size is None:
        return True
    names = _names({"size": size})
    return any(n not in determined and not solver.is_existential(n) for n in names)


def _names(attrs: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of sizes in attributes."""
    for dim in dims_in_attrs(attrs):
        yield from (a.name for a in dim.atoms() if isinstance(a, DimVar))
