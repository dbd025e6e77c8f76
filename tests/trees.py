"""Programs in normal form as the trees that they come from."""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir.expr import Expr, Flavour, Function, LetBlock
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import post_order, rewrite, substitute


def as_trees(module: Module) -> Module:
    """Return a program without effects with every value that is used once put where it is used."""
    return module.with_functions(
        {name: _tree(function) for name, function in module.functions.items()}
    )


def _tree(function: Function) -> Function:
    folded = rewrite(function, _folded)
    assert isinstance(folded, Function)
    return folded


def _folded(expr: Expr) -> Expr:
    if not isinstance(expr, LetBlock) or expr.flavour is not Flavour.PURE:
        return expr
    rest = replace(expr, bindings=())
    for binding in reversed(expr.bindings):
        if sum(node is binding.var for node in post_order(rest)) == 1:
            found = substitute(rest, {binding.var: binding.value})
            assert isinstance(found, LetBlock)
            rest = found
        else:
            rest = replace(rest, bindings=(binding, *rest.bindings))
    return rest if rest.bindings else rest.body
