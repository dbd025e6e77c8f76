"""Forward and backward functions of ruled functions: calls of the rules that the user wrote.

What a ruled function captures has no cotangent, so it is a mistake if it is varied. The cotangent
of its result is made in the user's own types, and so are those that the backward rule returns.

The pullback of a mapped function is a map too: it takes each element's cotangent to that of its
arguments. The forward function saves the arguments, and the backward function maps one that
computes the function again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import (
    Batching,
    Differentiation,
    Expr,
    Function,
    GlobalVar,
    Rule,
    Transform,
    Var,
    function_type,
    type_of,
)
from ...ir.names import Names
from ...ir.types import FnType, TensorType, TupleType, Type, as_arguments
from ...operators.builder import Builder, Value
from ..deriving.copying import Copier
from ..deriving.cotangents.masks import bits
from ..deriving.deriver import Wanted
from ..deriving.tangent_rules import captured_is_varied

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ..deriving.workspace import Workspace
    from .instances import Instance


def transposed_rule(space: Workspace, instance: Instance, inner: Instance) -> None:
    """Fill in the instance of a function with a rule for forward mode. The derivative of its rule
    in the tangents is `inner`: the forward function takes any, and its backward function is that of
    the instance."""
    function = space.store.functions[instance.source]
    first = sum(space.leaves.width(type_of(p)) for p in function.params)
    active = set(bits(inner.active))
    instance.active = sum(
        1 << leaf for i, leaf in enumerate(bits(instance.varied)) if first + i in active
    )
    instance.backward, instance.residual = inner.backward, inner.residual
    instance.works_on_cells = inner.works_on_cells
    if inner.residual is None:
        return
    span = function.span.derived(f"gradient of {instance.source}")
    builder = Builder(span, Names())
    copier = Copier(builder.names)
    params = tuple(copier.fresh(p) for p in function.params)
    args = [builder.value(p) for p in params]
    points = [leaf for p in args for leaf in space.border.anywhere(builder, p)]
    args += (builder.value(points[i]) for i in bits(instance.varied))
    callee = space.store.functions[inner.forward]
    both = builder.apply(
        inner.forward, args, function_type(callee).result, as_arguments(function.type_params)
    )
    result = builder.tuple((both[0][0], both[1]))
    instance.forward = space.store.define(
        f"{instance.source}_fwd", function, params, builder.block(result), span
    )


@final
class RuledDerivation:
    """Makes the forward and the backward function of one ruled function."""

    def __init__(self, space: Workspace, instance: Instance, rule: Transform) -> None:
        function = space.store.functions[instance.source]
        self._space: Final = space
        self._store: Final = space.store
        self._leaves: Final = space.leaves
        self._border: Final = space.border
        self._instance: Final = instance
        self._function: Final = function
        self._rule: Final = rule
        self._wrt: Final = tuple(i + rule.captures for i in rule.options.indices)
        self._value: Final = function_type(function).result
        self._span: Final = function.span.derived(f"gradient of {instance.source}")
        self._keeps_value: Final = _has_data(self._value)
        """Whether the cotangent of the result, as the user's rule takes it, needs the result."""

    def derive(self) -> Iterator[Problem]:
        """Fill in the instance; return the mistakes."""
        instance, rule = self._instance, self._rule
        problem = captured_is_varied(self._space, self._function, instance.varied)
        if problem is not None:
            yield problem
            return
        chosen = sum(1 << i for i, place in enumerate(self._places()) if place in self._wrt)
        instance.active = instance.varied & chosen
        if not instance.active or not instance.useful:
            instance.active = 0
            return
        instance.values = tuple(range(rule.captures))
        self._forward()
        self._backward()

    def _places(self) -> list[int]:
        """Return the parameter that each leaf belongs to."""
        params = self._function.params
        return [i for i, p in enumerate(params) for _ in self._leaves.of(type_of(p))]

    def _forward(self) -> None:
        """Define the function that returns the value and what is saved."""
        builder, instance = Builder(self._span, Names()), self._instance
        copier = Copier(builder.names)
        params = tuple(copier.fresh(p) for p in self._function.params)
        both = self._call(builder, self._rule.rules[0], [builder.value(p) for p in params])
        if self._keeps_value:
            both = builder.tuple((both[0], builder.tuple((both[1], both[0]))))
        assert isinstance(both.ty, TupleType)
        instance.residual = both.ty.fields[1]
        instance.forward = self._define("fwd", params, builder, both)

    def _backward(self) -> None:
        """Define the function from what is saved and cotangents to cotangents."""
        builder, instance = Builder(self._span, Names()), self._instance
        names, span, rule = builder.names, self._span, self._rule
        assert instance.residual is not None
        saved = Var(names.fresh("saved"), instance.residual, span=span)
        copier = Copier(names)
        captured = [copier.fresh(p) for p in self._function.params[: rule.captures]]
        leaves = self._leaves.of(self._value)
        given = {i: Var(names.fresh("g"), leaves[i], span=span) for i in bits(instance.useful)}
        whole = builder.value(saved)
        kept, value = (whole[0], whole[1]) if self._keeps_value else (whole, whole)
        every = iter([given.get(i) for i in range(len(leaves))])
        g = self._border.gradient(builder, value, self._value, every)
        args = [*(builder.value(c) for c in captured), kept, g]
        cotangents = self._call(builder, rule.rules[1], args)
        found = self._cotangent_leaves(builder, cotangents)
        results = [builder.value(found[i]) for i in bits(instance.active)]
        result = results[0] if len(results) == 1 else builder.tuple(results)
        params = (saved, *captured, *given.values())
        instance.backward = self._define("bwd", params, builder, result)

    def _cotangent_leaves(self, builder: Builder, whole: Value) -> dict[int, Expr]:
        """Return the leaves of what the backward rule returns, by their places."""
        options, found = self._rule.options, dict[int, Expr]()
        assert isinstance(options, Differentiation)
        index = 0
        for position, param in enumerate(self._function.params):
            ty = type_of(param)
            if position in self._wrt:
                part = whole if options.single else whole[self._wrt.index(position)]
                found.update(enumerate(self._border.incoming(builder, part, ty), index))
            index += self._leaves.width(ty)
        return found

    def _call(self, builder: Builder, rule: Expr, args: Sequence[Value]) -> Value:
        """Return a call of a rule."""
        assert isinstance(rule, GlobalVar)
        return self._store.call(builder, rule.name, args)

    def _define(self, role: str, params: tuple[Var, ...], builder: Builder, result: Value) -> str:
        """Define a function; return its name."""
        hint = f"{self._instance.source}_{role}"
        return self._store.define(hint, self._function, params, builder.block(result), self._span)


def _has_data(ty: Type) -> bool:
    """Return whether a type is other than tensors in tuples, whose zeros need no value."""
    if isinstance(ty, TupleType):
        return any(map(_has_data, ty.fields))
    return not isinstance(ty, TensorType)


def completed(space: Workspace, name: str, rule: Transform, varied: tuple[int, ...]) -> Transform:
    """Return the rule of a ruled function that maps, with its forward and its backward function;
    `varied` has the parameters that cotangents are wanted of."""
    function = space.store.functions[name]
    assert isinstance(function.ty, FnType)
    assert isinstance(rule.options, Differentiation)
    options = replace(rule.options, wrt=varied, single=False)
    fwd = _forward(space, name, function)
    bwd = _backward(space, function, space.mapped[name], varied)
    rules = tuple(GlobalVar(n, space.store.functions[n].ty, span=rule.span) for n in (fwd, bwd))
    return replace(rule, options=options, rules=rules)


def _forward(space: Workspace, name: str, function: Function) -> str:
    """Define the function that returns the value and the arguments. It calls the ruled function,
    since it may be differentiated once more."""
    builder = Builder(function.span, Names())
    params = tuple(map(Copier(builder.names).fresh, function.params))
    args = [builder.value(p) for p in params]
    assert isinstance(function.ty, FnType)
    type_args = as_arguments(function.type_params)
    value = builder.apply(name, args, function.ty.result, type_args)
    whole = builder.tuple((value, builder.tuple(args)))
    hint = f"{function.name}_fwd"
    return space.store.define(hint, function, params, builder.block(whole), function.span)


def _backward(space: Workspace, function: Function, wanted: Wanted, wrt: tuple[int, ...]) -> str:
    """Define the function from the arguments and a cotangent of the value to cotangents."""
    builder = Builder(function.span, Names())
    assert isinstance(function.ty, FnType)
    assert isinstance(wanted.options, Batching)
    saved = Var(builder.names.fresh("saved"), TupleType(function.ty.params), span=function.span)
    g = Var(builder.names.fresh("g"), function.ty.result, span=function.span)
    makers = space.makers
    assert makers is not None
    pulled = makers.pulled(wanted.function, wrt)
    axes = (*wanted.options.axes(len(function.params)), 0)
    mapped = makers.mapped(Wanted(Rule.VMAP, pulled, 0, Batching(axes, 0)))
    args = [builder.value(saved)[i] for i in range(len(function.params))]
    result = TupleType(tuple(function.ty.params[i] for i in wrt))
    type_args = as_arguments(function.type_params)
    whole = builder.apply(mapped, (*args, builder.value(g)), result, type_args)
    hint, body = f"{function.name}_bwd", builder.block(whole)
    return space.store.define(hint, function, (saved, g), body, function.span)
