"""Closures capture the fields of tuples that they read, not the tuples.

`let f = fn (g) { let t = pair.1; ... }` becomes `let t = pair.1; let f = fn (g) { ... }`. A closure
keeps what it captures: the pullback of a pool keeps the places of the largest elements, and need
not keep the pooled image beside them. Where the tuple is then used for nothing else, the kernel
that makes it stores its fields, and no tuple is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Expr, Flavour, Function, LetBlock, Match, TupleGet, Var
from ...ir.module import Module
from ...ir.traverse import children, let, pattern_vars, rewrite
from ...ir.verify import Stage
from ..base import Context, Pass


def capture_fields(module: Module) -> Module:
    """Return a module in A-normal form in which closures capture fields."""
    return module.map_functions(_changed)


@final
@dataclass(frozen=True, slots=True)
class CaptureFields(Pass):
    """Read the fields of captured tuples where closures are made."""

    name: ClassVar = "capture-fields"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return capture_fields(module)


def _changed(function: Function) -> Function:
    """Return a global function with its closures changed, those inside others first."""
    body = rewrite(function.body, _with_fields)
    return function if body is function.body else replace(function, body=body)


def _with_fields(node: Expr) -> Expr:
    """Return a block with the fields that its closures read bound in front of them."""
    if not isinstance(node, LetBlock):
        return node
    bindings: list[Binding] = []
    for binding in node.bindings:
        closure = binding.value
        read = _captured(closure) if isinstance(closure, Function) else []
        if not read or not isinstance(closure, Function):
            bindings.append(binding)
            continue
        body = _without(closure.body, frozenset(b.var for b in read))
        bindings += (*read, replace(binding, value=replace(closure, body=body)))
    if len(bindings) == len(node.bindings):
        return node
    if node.flavour is not Flavour.REC:
        return replace(node, bindings=tuple(bindings))
    functions = tuple(b for b in bindings if isinstance(b.value, Function))
    return let([b for b in bindings if b not in functions], replace(node, bindings=functions))


def _captured(closure: Function) -> list[Binding]:
    """Return the bindings of a closure that read fields of tuples from outside, in order."""
    own: set[Var] = set(closure.params)
    found: list[Binding] = []
    for node in _own_nodes(closure.body):
        if isinstance(node, Match):
            own.update(v for clause in node.clauses for v in pattern_vars(clause.pattern))
        if not isinstance(node, LetBlock):
            continue
        for binding in node.bindings:
            match binding.value:
                case TupleGet(Var() as whole) if whole not in own:
                    found.append(binding)
                case _:
                    own.add(binding.var)
    return found


def _own_nodes(body: Expr) -> Iterator[Expr]:
    """Yield the nodes of a function that are in no function inside, parents first."""
    pending = [body]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, Function):
            pending += reversed(children(node))


def _without(body: Expr, read: frozenset[Var]) -> Expr:
    """Return the body of a closure without some bindings."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock):
            return node
        kept = tuple(b for b in node.bindings if b.var not in read)
        if len(kept) == len(node.bindings):
            return node
        return let(kept, node.body, node.flavour)

    return rewrite(body, change)
