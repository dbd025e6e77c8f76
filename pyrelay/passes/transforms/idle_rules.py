"""Annotations that no derivative meets, and the rules that only they mention.

A function under `custom_vjp` that is never differentiated is the plain function. Its rules may hold
transforms of their own, of functions that are not known here; these need not be expanded.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from ...analysis.bindings import uses
from ...analysis.call_graph import callees, reachable
from ...ir.expr import Binding, Expr, Function, GlobalVar, Transform
from ...ir.module import Module
from ...ir.traverse import map_bindings, post_order
from ..deriving.ruled import without_annotations


def without_idle_rules(module: Module, entry: str) -> Module:
    """Return the module, in A-normal form, without the annotations that no derivative reaches from
    the entry; itself if there are none."""
    plain: dict[str, Function] = {}
    differentiated: set[str] = set()
    pending = [entry]
    while pending:
        name = pending.pop()
        if name in plain or name in differentiated or name not in module.functions:
            continue
        function = _without_annotations(module.functions[name])
        operands = [n.function for n in post_order(function) if isinstance(n, Transform)]
        globals_ = [f.name for f in operands if isinstance(f, GlobalVar)]
        if len(globals_) < len(operands):
            # What is differentiated is in the function itself.
            differentiated.update(reachable(module.functions, (name,)))
            continue
        plain[name] = function
        differentiated.update(reachable(module.functions, globals_))
        pending += callees(function)
    found = {n: f for n, f in plain.items() if n not in differentiated}
    if all(module.functions[n] is f for n, f in found.items()):
        return module
    return replace(module, functions={**module.functions, **found})


def _without_annotations(function: Function) -> Function:
    """Return a function with the plain functions in place of annotated ones, and without the local
    functions that nothing mentions then."""
    made = without_annotations(function)
    if made is function:
        return function
    while True:
        used = uses(made)

        def kept(binding: Binding, used: Container[Expr] = used) -> Sequence[Binding]:
            is_idle = _is_silent(binding.value) and binding.var not in used
            return () if is_idle else (binding,)

        changed = map_bindings(made, kept)
        assert isinstance(changed, Function)
        if changed is made:
            return made
        made = changed


def _is_silent(value: Expr) -> bool:
    return isinstance(value, Function | Transform)
