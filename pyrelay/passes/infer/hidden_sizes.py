"""Sizes that stand only in type arguments of data: no value shows them to the running program.

`Vec[N]` may be an empty vector, so a function that takes one cannot tell `N` from it alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics.catalogue.data import SizeNotShown
from ...diagnostics.diagnostic import Problem
from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Expr, Function, Var
from ...ir.op import Op
from ...ir.traverse import bound_vars, post_order
from ...ir.types import dim_names
from ..sizes import needed, shown, uncovered


def hidden_sizes(function: Function) -> list[Problem]:
    """Give the places in a typed function that need the value of a size which nothing shows."""
    declared = {Dim.atom(p) for p in function.type_params if isinstance(p, DimVar)}
    hidden = declared - {d for p in function.params for d in shown(p.ty)}
    if not hidden:
        return []
    nodes = list(post_order(function))
    known = {d for var in _values(function, nodes) for d in shown(var.ty)}
    found: list[Problem] = []
    for node in nodes:
        for dim in needed(node):
            missing = [d for d in uncovered(dim, known) if d in hidden]
            if missing:
                found.append(_problem(function, node, missing[0]))
    return found[:1]


def _values(function: Function, nodes: list[Expr]) -> Iterator[Expr]:
    """Give what a program has values of beside the results of the operators that need sizes."""
    yield from function.params
    for node in nodes:
        yield from bound_vars(node)
        if not (isinstance(node, Call) and isinstance(node.callee, Op) and any(needed(node))):
            yield node


def _problem(function: Function, node: Expr, dim: Dim) -> Problem:
    name = str(dim)
    holder = next((p for p in function.params if p.ty and name in dim_names(p.ty)), None)
    assert holder is None or isinstance(holder, Var)
    return SizeNotShown(
        node.span, name, "" if holder is None else holder.name, (holder or function).span
    )
