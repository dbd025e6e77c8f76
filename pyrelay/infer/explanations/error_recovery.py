"""The parts of a program with mistakes that inference cannot judge.

Where translation found a mistake it left a placeholder: a constant without a type. Whatever is
computed from one, or from a function whose type is not known for its own mistakes, is in doubt: a
clash there may only follow from the mistake that has been reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from ...diagnostics.diagnostic import Problem
from ...ir.constant import is_placeholder
from ...ir.expr import Call, Expr, Function, GlobalVar, LetBlock, Match, RefWrite, Var
from ...ir.traverse import bound_vars, children, post_order
from ...ir.types import Type, TypeHole, open_shapes, subtypes

Extent: TypeAlias = tuple[int, int]

NONE: Final[frozenset[Extent]] = frozenset()


def has_placeholder(function: Function) -> bool:
    """Return whether translation refused something in a function."""
    return any(is_placeholder(n) for n in post_order(function))


def doubtful(function: Function, unknown: Collection[str]) -> frozenset[Extent]:
    """Return the places of values that are computed from placeholders, from parameters without a
    type, or from global functions of which nothing is known."""
    nodes = list(post_order(function))
    pending: list[Expr] = [n for n in nodes if _is_source(n, unknown)]
    pending += (p for p in function.params if is_open(p.ty))
    if not pending:
        return NONE
    around: dict[Expr, list[Expr]] = {}
    local: dict[Var, Function] = {}
    for node in nodes:
        for part in children(node):
            around.setdefault(part, []).append(node)
        if isinstance(node, LetBlock):
            local.update((b.var, b.value) for b in node.bindings if isinstance(b.value, Function))
    found: dict[Expr, None] = {}
    while pending:
        expr = pending.pop()
        if expr not in found:
            found[expr] = None
            for node in around.get(expr, ()):
                pending += _reached(node, expr, local)
    return frozenset((n.span.start, n.span.end) for n in found)


def is_open(annotation: Type | None) -> bool:
    """Return whether an annotation leaves a type out, or a part of it."""
    if annotation is None or open_shapes(annotation):
        return True
    return any(isinstance(t, TypeHole) for t in subtypes(annotation))


def _is_source(node: Expr, unknown: Collection[str]) -> bool:
    return is_placeholder(node) or (isinstance(node, GlobalVar) and node.name in unknown)


def _reached(node: Expr, part: Expr, local: Mapping[Var, Function]) -> list[Expr]:
    """Return the nodes in doubt because a part of them is."""
    match node:
        case LetBlock(bindings, body):
            found: list[Expr] = [b.var for b in bindings if b.value is part]
            return [*found, node] if body is part else found
        case Match(value) if value is part:
            return [*bound_vars(node), node]
        case RefWrite(ref):
            return [ref, node]
        case Call(Var() as callee, args) if callee in local:
            params = zip(local[callee].params, args, strict=False)
            return [*(p for p, a in params if a is part), node]
        case _:
            return [node]


def is_doubtful(problem: Problem, places: Collection[Extent]) -> bool:
    """Return whether a mistake may follow from one that has been reported."""
    if not places:
        return False
    found = problem.diagnostic()
    labels = (found.primary, *found.secondary)
    return any(x is not None and (x.span.start, x.span.end) in places for x in labels)
