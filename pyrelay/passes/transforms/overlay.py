"""A first-order program laid over the module it was made from.

A function whose type has not changed takes the place of the original. One that gives or takes
function data now gets a name of its own, since callers outside still pass functions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.expr import Expr, Function, GlobalVar
from ...ir.traverse import rewrite

if TYPE_CHECKING:
    from ...ir.module import Module
    from ..deriving.store import Store


def lay_over(store: Store, made: Module) -> list[str]:
    """Add a first-order program to the store; return the names of its functions there."""
    renamed: dict[str, str] = {}
    for name, function in made.functions.items():
        old = store.functions.get(name)
        if old is not None and old.ty != function.ty:
            renamed[name] = store.function_name(name)

    def change(node: Expr) -> Expr:
        if isinstance(node, GlobalVar) and node.name in renamed:
            return replace(node, name=renamed[node.name])
        return node

    functions: dict[str, Function] = {}
    for name, function in made.functions.items():
        new = rewrite(function, change) if renamed else function
        assert isinstance(new, Function)
        functions[renamed.get(name, name)] = new
    store.add(functions, made.adts)
    return list(functions)
