"""Definitions and uses: what binds each variable of a function, and where it is mentioned.

Every variable is bound once, so both cover a whole global function with all functions inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..ir.expr import Call, Expr, Function, LetBlock, Var
from ..ir.memo import remembered
from ..ir.traverse import children, post_order, pre_order


@remembered
def definitions(function: Function) -> Mapping[Expr, Expr]:
    """Return the values of the variables that let blocks bind, in order of binding."""
    return {
        binding.var: binding.value
        for node in pre_order(function.body)
        if isinstance(node, LetBlock)
        for binding in node.bindings
    }


@remembered
def uses(function: Function) -> Counter[Expr]:
    """Return how often each variable is mentioned."""
    return Counter(node for node in post_order(function.body) if isinstance(node, Var))


@remembered
def used_as_values(function: Function) -> frozenset[Expr]:
    """Return the variables that are mentioned other than as callees. Local functions that are not
    among them do not escape: every call of them is seen."""
    found = {function.body} if isinstance(function.body, Var) else set[Expr]()
    for node in post_order(function.body):
        inside = node.args if isinstance(node, Call) else children(node)
        found.update(part for part in inside if isinstance(part, Var))
    return frozenset(found)
