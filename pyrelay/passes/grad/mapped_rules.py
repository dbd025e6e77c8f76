"""The derivatives of mapped functions: maps of derivatives.

The pullback of a map takes each element's cotangent to that of its arguments. The forward function
saves the arguments, and the backward function maps one that computes the function again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.expr import Batching, Differentiation, Function, GlobalVar, Rule, Transform, Var
from ...ir.names import Names
from ...ir.types import FnType, TupleType, as_arguments
from ...operators.builder import Builder
from ..deriving.copying import Copier
from ..deriving.deriver import Wanted

if TYPE_CHECKING:
    from ..deriving.workspace import Workspace


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
