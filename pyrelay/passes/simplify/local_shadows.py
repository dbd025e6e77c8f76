"""Shadows of cells that a backward function makes itself, as cells of its own.

A backward function asks for the shadow of a cell by the run that it belongs to (`deriving/
cotangents/cells.py`). Where inlining has brought the run, the cell and all that asks for its shadow
into one function, the shadow is a cell that is made there, and can be a value (`promote_refs`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.bindings import uses
from ...ir.expr import Call, Expr, Function, LetBlock, RefCreate, Var, type_of
from ...ir.traverse import children, rewrite
from ...operators.host.shadow import shadow

if TYPE_CHECKING:
    from ...ir.module import Module


def with_local_shadows(module: Module) -> Module:
    """Return a module in A-normal form in which shadows of local cells in local runs are cells."""
    return module.map_functions(_with_local_shadows)


def _with_local_shadows(function: Function) -> Function:
    homes, asked = _found(function)
    if not asked:
        return function
    counts = uses(function)
    by_run: dict[Expr, list[Call]] = {}
    for call in asked:
        by_run.setdefault(call.args[0], []).append(call)
    made: dict[Expr, RefCreate] = {}
    for run, calls in by_run.items():
        # Another variable may hold the same cell, unless each is that of a cell made here.
        homes_of = {homes.get(part) is asked[c] for c in calls for part in c.args[:2]}
        cells = {c.args[1] for c in calls}
        if homes_of == {True} and len(cells) == len(calls) == counts[run]:
            made |= {c: RefCreate(c.args[2], ty=type_of(c), span=c.span) for c in calls}
    if not made:
        return function
    body = rewrite(function.body, lambda node: made.get(node, node))
    return replace(function, body=body)


def _found(function: Function) -> tuple[dict[Expr, Function], dict[Call, Function]]:
    """Return the functions, this one or local ones, that make cells, and that ask for shadows."""
    homes: dict[Expr, Function] = {}
    asked: dict[Call, Function] = {}
    pending: list[tuple[Expr, Function]] = [(function.body, function)]
    while pending:
        node, owner = pending.pop()
        match node:
            case Function(body=body):
                pending.append((body, node))
                continue
            case LetBlock(bindings):
                homes |= {b.var: owner for b in bindings if isinstance(b.value, RefCreate)}
            case Call(callee) if callee is shadow:
                asked[node] = owner
            case _:
                pass
        pending += [(child, owner) for child in children(node) if not isinstance(child, Var)]
    return homes, asked
