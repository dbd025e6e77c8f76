"""Which parameters a region function writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.expr import Call, GlobalVar, LetBlock, Var
from ..ir.traverse import post_order
from ..operators.composite.descent import overwrite
from .outlined import outlined_of

if TYPE_CHECKING:
    from ..ir.module import Module


def written_parameters(module: Module, name: str) -> tuple[int, ...]:
    """Return the positions of the parameters of a region function in whose storage it writes:
    through its kernels, or by itself."""
    function = module.functions[name]
    positions = {p: i for i, p in enumerate(function.params)}
    found: set[int] = set()
    for node in post_order(function):
        if not isinstance(node, LetBlock):
            continue
        for call in (b.value for b in node.bindings if isinstance(b.value, Call)):
            targets = (call.args[i] for i in _written_operands(module, call))
            found.update(positions[t] for t in targets if isinstance(t, Var) and t in positions)
    return tuple(sorted(found))


def _written_operands(module: Module, call: Call) -> tuple[int, ...]:
    match call.callee:
        case GlobalVar(name):
            return outlined_of(module).groups[name].overwritten
        case callee if callee is overwrite:
            return (0,)
        case _:
            return ()
