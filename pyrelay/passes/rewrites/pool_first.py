"""Monotone functions move behind a maximum: `max_pool(tanh(x))` becomes `tanh(max_pool(x))`.

The values are the same, and the function is computed on a pooled tensor, a quarter of the size or
less; so is its derivative, since this runs before gradients are taken. Among elements of a window
that the function makes equal, the gradient goes to the one that was largest before; where tanh,
sigmoid and relu make different elements equal, their derivative is zero, so nothing changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

from ...ir.expr import Binding, Call, Expr, Function, LetBlock, Var
from ...ir.module import Module
from ...ir.op import Op
from ...ir.traverse import post_order, rewrite
from ...ir.verify import Stage
from ...operators.primitive.activation import relu, sigmoid
from ...operators.primitive.math import tanh
from ...operators.primitive.pool import max_pool2d
from ..base import Context, Opaque, Pass, nothing_opaque

MONOTONE: Final[frozenset[Op]] = frozenset({tanh, sigmoid, relu})
"""Functions that never decrease, and whose derivative is zero where they are flat."""


def pool_first(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with monotone functions behind the pools they feed, but
    for those that are `opaque`."""
    moving = frozenset(op for op in MONOTONE if not opaque(op))
    if opaque(max_pool2d) or not moving:
        return module
    return module.map_bodies(lambda function: _body(function, moving))


@final
@dataclass(frozen=True, slots=True)
class PoolFirst(Pass):
    """Move monotone functions behind the maximum they feed."""

    name: ClassVar = "pool-first"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return pool_first(module, context.opaque)


def _body(function: Function, moving: frozenset[Op]) -> Expr:
    uses: Counter[Var] = Counter()
    made: dict[Var, Call] = {}
    pools: list[Call] = []
    for node in post_order(function.body):
        match node:
            case Var():
                uses[node] += 1
            case LetBlock(bindings):
                made.update(
                    (b.var, b.value)
                    for b in bindings
                    if isinstance(b.value, Call) and b.value.callee in moving
                )
            case Call(callee) if callee is max_pool2d:
                pools.append(node)
            case _:
                pass
    moved = {v: made[v] for p in pools for v in p.args if isinstance(v, Var) and v in made}
    moved = {var: call for var, call in moved.items() if uses[var] == 1}
    if not moved:
        return function.body
    return rewrite(function.body, lambda node: _blocks(node, moved))


def _blocks(node: Expr, moved: dict[Var, Call]) -> Expr:
    if not isinstance(node, LetBlock):
        return node
    bindings: list[Binding] = []
    for binding in node.bindings:
        match binding.value:
            case _ if binding.var in moved:
                continue
            case Call(callee, (Var() as fed,)) as pool if callee is max_pool2d and fed in moved:
                function = moved[fed]
                pooled = Var("pooled", pool.ty, span=pool.span)
                bindings.append(Binding(pooled, replace(pool, args=function.args)))
                bindings.append(Binding(binding.var, replace(function, args=(pooled,), ty=pool.ty)))
            case _:
                bindings.append(binding)
    if not bindings:
        return node.body
    return replace(node, bindings=tuple(bindings))
