"""Forward and backward functions of checkpointed functions: saving little, computing again.

The backward function of a checkpointed function takes the arguments of the forward call, runs the
forward function of what is under the checkpoint, and then its backward function. The operator
`recomputed` stands around the arguments there, so that no pass takes the second computation for
the first. With a policy, what the policy names is returned by the forward function and not
computed again. See Griewank and Walther, "Algorithm 799: revolve", 2000, and Chen et al.,
"Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from ...analysis.call_graph import CallGraph, reachable
from ...diagnostics.catalogue.derivatives import NothingOfThatName, RunsAgain
from ...diagnostics.diagnostic import CheckError, Problem
from ...ir.effect import effects_of
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    RefCreate,
    Transform,
    Var,
    function_type,
    type_of,
)
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Contraction, Effect, Op
from ...ir.traverse import run, spine
from ...ir.types import UNIT, RefType, TensorType, TupleType
from ...operators.builder import Builder, Value
from ...operators.primitive.activation import recomputed
from ...operators.primitive.conv import CONVOLUTIONS
from ..deriving.copying import Copier
from ..deriving.cotangents.masks import bits
from ..normalise.flavours import with_flavours
from ..simplify.inline import inline_calls
from .finish import one_or_tuple

if TYPE_CHECKING:
    from ..deriving.store import Store
    from ..deriving.workspace import Workspace
    from .instances import Instance

PRODUCTS: Final = "products"
"""The policy that saves the results of products and convolutions."""


def obstacle(store: Store, name: str, rule: Transform) -> Problem | None:
    """Return why a checkpointed function cannot be run again, if it cannot."""
    inner = rule.function
    assert isinstance(inner, GlobalVar)
    reached = reachable(store.functions, (inner.name,))
    if name in reached:
        why = "it calls itself through the checkpoint"
        return RunsAgain(rule.span, why, "checkpoint the whole recursion, where it is called")
    module = Module({n: store.functions[n] for n in reached}, store.adts)
    effect = effects_of(module).of_call(inner.name)
    if effect & (Effect.STATE | Effect.IO | Effect.RANDOM):
        why = "it reads or writes state, prints, or draws numbers without a key"
        return RunsAgain(rule.span, why, "checkpoint a part of it that only computes")
    return None


@final
class Recomputation:
    """Makes the forward and the backward function of one checkpointed function."""

    def __init__(
        self, space: Workspace, rule: Transform, instances: tuple[Instance, Instance]
    ) -> None:
        self._store: Final = space.store
        self._leaves: Final = space.leaves
        self._cotangents: Final = space.cotangents
        self._rule: Final = rule
        self._instance, self._inner = instances
        self._function: Final = space.store.functions[self._instance.source]
        self._span: Final = self._function.span.derived(f"gradient of {self._instance.source}")

    def derive(self) -> None:
        """Fill in the instance. Raises CheckError."""
        instance, inner = self._instance, self._inner
        instance.active = inner.active
        if not inner.active:
            return
        instance.values = tuple(range(len(self._function.params)))
        forward = None if inner.residual is None else self._forward()
        kept = [] if forward is None else _kept(forward, self._rule)
        if kept:
            assert forward is not None
            self._saving(forward, kept)
        self._backward(forward, kept)

    def _forward(self) -> Function:
        """Return the function that computes what is saved: that of the function below, with all
        that it calls in it where a policy looks into it."""
        name = self._inner.forward
        if not self._rule.policy:
            return self._store.functions[name]
        reached = {n: self._store.functions[n] for n in reachable(self._store.functions, (name,))}
        graph = CallGraph(reached)
        called = [n for n in reached if n != name and n not in graph.recursive]
        module = with_flavours(Module(reached, self._store.adts))
        return inline_calls(module, called).functions[name]

    def _saving(self, forward: Function, kept: Sequence[Var]) -> None:
        """Define the forward function that returns what the policy names beside the value."""
        builder, copier, params = self._opened()
        pair = self._copied(forward, builder, copier, params)
        found = [builder.value(copier.atom(v)) for v in kept]
        saved = found[0] if len(found) == 1 else builder.tuple(found)
        self._instance.residual = saved.ty
        result = builder.tuple((builder.value(pair[0]), saved))
        self._instance.forward = self._define("fwd", params, builder, result)

    def _backward(self, forward: Function | None, kept: Sequence[Var]) -> None:
        """Define the function from arguments, what the policy saved, and cotangents."""
        inner, span = self._inner, self._span
        builder, copier, own = self._opened()
        leaves = self._leaves.of(function_type(self._function).result)
        given = [Var(builder.names.fresh("g"), leaves[i], span=span) for i in bits(inner.useful)]
        saved = None
        if self._instance.residual is not None:
            saved = Var(builder.names.fresh("saved"), self._instance.residual, span=span)
            whole = builder.value(saved)
            parts = [whole] if len(kept) == 1 else [whole[i] for i in range(len(kept))]
            again = [_again(builder, part).atom for part in parts]
            copier.env.update(zip(kept, again, strict=True))
        args = [_again(builder, builder.value(p)) for p in own]
        taken: list[Value] = []
        if forward is not None:
            atoms = [a.atom for a in args]
            pair = self._copied(forward, builder, copier, atoms)
            taken.append(builder.value(pair[1]))
        taken += [args[i] for i in inner.values]
        taken += [builder.value(v) for v in given]
        places = [leaf for p in self._function.params for leaf in self._leaves.of(type_of(p))]
        zero = self._cotangents.zero
        taken += [zero(builder, places[i]) for i in bits(inner.active & inner.threaded)]
        if inner.works_on_cells:
            cell = RefCreate(builder.unit().atom, RefType(UNIT), span=span)
            taken.append(builder.bind(cell, "run"))
        result = one_or_tuple([places[i] for i in bits(inner.active)])
        found = self._store.call(builder, inner.backward, taken, result)
        params = (*(() if saved is None else (saved,)), *own, *given)
        self._instance.backward = self._define("bwd", params, builder, found)

    def _opened(self) -> tuple[Builder, Copier, tuple[Var, ...]]:
        """Return the tools that build a new function, and its parameters."""
        names = Names()
        copier = Copier(names)
        params = tuple(copier.fresh(p) for p in self._function.params)
        return Builder(self._span, names), copier, params

    def _copied(
        self, forward: Function, builder: Builder, copier: Copier, args: Sequence[Expr]
    ) -> tuple[Expr, Expr]:
        """Add the code of the forward function, but for what the copier knows already; return the
        value and the residual. A function that no policy looks into is called."""
        inner = self._inner
        assert inner.residual is not None
        if not self._rule.policy:
            values = [builder.value(a) for a in args]
            if inner.trace is not None:
                trace = inner.trace
                values.append(builder.construct(trace.name, inner.start, (), trace))
            both_type = TupleType((function_type(self._function).result, inner.residual))
            both = self._store.call(builder, inner.forward, values, both_type)
            return both[0].atom, both[1].atom
        copier.env.update(zip(forward.params, args, strict=False))
        if inner.trace is not None:
            trace = builder.construct(inner.trace.name, inner.start, (), inner.trace)
            copier.env[forward.params[-1]] = trace.atom
        blocks, end = spine(forward.body)
        for binding in (b for block in blocks for b in block.bindings):
            if binding.var not in copier.env:
                value = run(copier.copy(binding.value))
                builder.bindings.append(Binding(copier.fresh(binding.var), value))
        last = builder.bind(run(copier.copy(end)), "both")
        return last[0].atom, last[1].atom

    def _define(self, role: str, params: tuple[Var, ...], builder: Builder, result: Value) -> str:
        """Define a function; return its name."""
        hint = f"{self._instance.source}_{role}"
        return self._store.define(hint, self._function, params, builder.block(result), self._span)


def _kept(forward: Function, rule: Transform) -> list[Var]:
    """Return the values of a forward function that a policy saves, those outside of branches and
    local functions. Raises CheckError for a name that there is not."""
    blocks, _ = spine(forward.body)
    bindings = [b for block in blocks for b in block.bindings]
    if PRODUCTS in rule.policy:
        return [b.var for b in bindings if _is_product(b.value)]
    found = [b.var for b in bindings if _plain(b.var.name) in rule.policy]
    known = {_plain(v.name) for v in found}
    for name in rule.policy:
        if name not in known:
            raise CheckError(NothingOfThatName(rule.span, name))
    return found


def _is_product(value: Expr) -> bool:
    match value:
        case Call(Op() as op):
            return isinstance(op.lowering, Contraction) or op in CONVOLUTIONS
        case _:
            return False


def _plain(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _again(builder: Builder, value: Value) -> Value:
    """Return an argument as one of the second computation."""
    match value.ty:
        case TensorType():
            return builder.call(recomputed, (value,))
        case TupleType(fields) if fields:
            return builder.tuple([_again(builder, value[i]) for i in range(len(fields))])
        case _:
            return value
