"""Transforms replaced in the function that holds them, once they are expanded.

A call of an expanded transform becomes a direct call; where the transform is used as a value, a
local function stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.bindings import uses
from ...ir.expr import Binding, Call, Expr, Function, LetBlock, Transform, Var, type_of
from ...ir.traverse import post_order, rewrite

if TYPE_CHECKING:
    from .lifting import Known, Lifter


def has_transforms(function: Function) -> bool:
    """Return whether a transform stands in a function."""
    return any(isinstance(node, Transform) for node in post_order(function))


def rewrite_calls(function: Function, lifter: Lifter) -> Function:
    """Return a function, global or local, with the transforms replaced that are expanded."""
    made = lifter.made
    if not made:
        return function
    direct = call_directly(function, lifter)
    assert isinstance(direct, Function)
    used = uses(direct)

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock):
            return node
        bindings: list[Binding] = []
        for binding in node.bindings:
            if not isinstance(binding.value, Transform) or binding.value not in made:
                bindings.append(binding)
                continue
            sizes, local = made[binding.value]
            bindings += sizes
            if binding.var in used:
                bindings.append(Binding(binding.var, local))
        return replace(node, bindings=tuple(bindings)) if bindings else node.body

    result = rewrite(direct, change)
    assert isinstance(result, Function)
    return result


def call_directly(expr: Expr, lifter: Lifter) -> Expr:
    """Return an expression in which calls of expanded transforms are direct calls."""
    known: Mapping[Var, Known] = lifter.known

    def change(node: Expr) -> Expr:
        if isinstance(node, Call) and isinstance(node.callee, Var) and node.callee in known:
            return lifter.call(known[node.callee], node.args, type_of(node), node.span)
        return node

    return rewrite(expr, change)
