"""Sizes that only the run finds, where a function takes two of them to be equal: it stays as it is.

Such a function compares the sizes as it runs; a function made of its code would not know that it
may.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.dim_availability import dims_in_attrs
from ...ir.dims import DimVar
from ...ir.expr import Call, Expr, Function, Pattern
from ...ir.module import Module
from ...ir.op import Op, ShapeBehaviour
from ...ir.traverse import bound_vars, post_order
from ...ir.types import dim_names
from ...ir.verify import typing
from ...ir.verify.scene import ModuleFacts, Scene


def takes_found_sizes_as_equal(module: Module, function: Function) -> bool:
    """Return whether the types in a function agree only if sizes that it finds are equal: they
    would not if it quantified them."""
    nodes = tuple(post_order(function))
    functions = (n for n in nodes if isinstance(n, Function))
    known = {p.name for f in functions for p in f.type_params if isinstance(p, DimVar)}
    found = frozenset[str]().union(*map(_sizes, nodes)) - known
    if not found:
        return False
    params = (*function.type_params, *(DimVar(n) for n in sorted(found)))
    scene = Scene(ModuleFacts(module), function.name or "", replace(function, type_params=params))
    checks = (typing.operators_follow_their_rules, typing.calls_agree, typing.nodes_agree)
    return any(not _tells(node) for check in checks for node, _ in check(scene))


def _tells(node: Expr | Pattern) -> bool:
    """Return whether a node is one that finds a size itself, or the function, whose type does not
    quantify it."""
    match node:
        case Function():
            return True
        case Call(Op() as op):
            return op.shape is ShapeBehaviour.DYNAMIC
        case _:
            return False


def _sizes(node: Expr) -> frozenset[str]:
    types = [v.ty for v in bound_vars(node) if v.ty is not None]
    found = frozenset[str]().union(*map(dim_names, types))
    if not isinstance(node, Call):
        return found
    return found.union(*(d.names() for d in dims_in_attrs(node.attrs)))
