"""Let-polymorphism by copying: a local function whose parameters have no types, called from
several places, gets one copy a place, so each may be inferred at types of its own.

Only functions that are never mentioned but to be called are copied; one that is passed around is
monomorphic. A bound on the number of copies keeps nested templates from exploding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from ...ir.expr import Binding, Call, Expr, Flavour, Function, LetBlock, Var
from ...ir.traverse import post_order, refresh, rewrite

_ROUNDS: Final = 4
_LIMIT: Final = 64


def copy_templates(function: Function) -> Function:
    """Give the function with local untyped functions copied for each place that calls them."""
    for _ in range(_ROUNDS):
        templates = _templates(function)
        if not templates:
            return function
        function = _copy(function, templates)
    return function


def _templates(function: Function) -> dict[Var, int]:
    """Give the local functions to copy, with the number of places outside that call them."""
    candidates: dict[Var, Function] = {}
    mentioned: Counter[Var] = Counter()
    called: Counter[Var] = Counter()
    for node in post_order(function):
        match node:
            case LetBlock((Binding(var, Function() as value),)) if _is_untyped(value):
                candidates[var] = value
            case Var():
                mentioned[node] += 1
            case Call(Var() as callee):
                called[callee] += 1
            case _:
                pass
    found: dict[Var, int] = {}
    for var, value in candidates.items():
        own = sum(1 for n in post_order(value) if n is var)
        outside = called[var] - own
        if mentioned[var] == called[var] and 1 < outside <= _LIMIT:
            found[var] = outside
    return found


def _is_untyped(function: Function) -> bool:
    return any(p.ty is None for p in function.params)


def _copy(function: Function, templates: dict[Var, int]) -> Function:
    copies: dict[Var, list[Var]] = {v: [replace(v) for _ in range(n)] for v, n in templates.items()}
    inside = {v: _own_calls(function, v) for v in templates}
    unused = {v: iter(vs) for v, vs in copies.items()}

    def change(node: Expr) -> Expr:
        match node:
            case Call(Var() as callee) if callee in templates and node.span not in inside[callee]:
                return replace(node, callee=next(unused[callee], copies[callee][-1]))
            case LetBlock((Binding(var, value),)) if var in templates:
                return _blocks(node, [(c, _copy_for(var, c, value)) for c in copies[var]])
            case _:
                return node

    changed = rewrite(function, change)
    assert isinstance(changed, Function)
    return changed


def _own_calls(function: Function, var: Var) -> set[object]:
    """Give the places of the calls that a template makes to itself."""
    for node in post_order(function):
        if isinstance(node, LetBlock) and node.bindings[0].var is var:
            inner = node.bindings[0].value
            return {n.span for n in post_order(inner) if isinstance(n, Call) and n.callee is var}
    return set()


def _copy_for(var: Var, copy: Var, value: Expr) -> Expr:
    fresh = refresh(value)
    return rewrite(fresh, lambda n: copy if n is var else n)


def _blocks(block: LetBlock, copies: list[tuple[Var, Expr]]) -> Expr:
    body = block.body
    for var, value in reversed(copies):
        flavour = block.flavour if block.flavour is Flavour.REC else Flavour.PURE
        body = LetBlock((Binding(var, value),), body, flavour, span=block.span)
    return body
