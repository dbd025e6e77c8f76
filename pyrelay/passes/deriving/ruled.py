"""Ruled functions: global functions whose derivative is not found but given.

A ruled function has the form

    def @f(%captured, %x) {
      let %own = custom_vjp{captures=1}(@value, @fwd, @bwd);
      %own(%captured, %x)
    }

It is what every transform that only annotates a function becomes before gradients are made, so that
calls of it are calls of a global function like any other. Once they are made it calls `@value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, LetBlock, Transform, Tuple, type_of
from ...ir.traverse import post_order, rewrite
from ...ir.types import UNIT
from .instantiation import match_types, type_arguments


def rule_of(function: Function) -> Transform | None:
    """Return the transform that a ruled function consists of; None for any other function."""
    match function.body:
        case LetBlock((Binding(var, Transform() as transform),), Call(callee, args)):
            is_own = callee is var and args == function.params
            return transform if is_own and transform.rule.is_annotation else None
        case _:
            return None


def opaque(function: Function) -> Function:
    """Return a function as its callers' gradients see it: a ruled one mentions no others."""
    if rule_of(function) is None:
        return function
    return replace(function, body=Tuple((), UNIT, span=function.span))


def has_derivatives(function: Function) -> bool:
    """Return whether a function holds transforms that are to be expanded."""
    nodes = post_order(function)
    return any(isinstance(n, Transform) and not n.rule.is_annotation for n in nodes)


def has_annotations(function: Function) -> bool:
    """Return whether a function holds transforms that annotate functions."""
    nodes = post_order(function)
    return any(isinstance(n, Transform) and n.rule.is_annotation for n in nodes)


def without_rules(function: Function, functions: Mapping[str, Function]) -> Function:
    """Return a function in which what has a derivative of its own is the plain function; a ruled
    one calls it."""
    own = rule_of(function)
    if own is not None:
        assert isinstance(own.function, GlobalVar)
        callee = functions[own.function.name]
        types = match_types(
            callee.type_params,
            [type_of(p) for p in callee.params],
            [type_of(p) for p in function.params],
        )
        args = type_arguments(callee.type_params, types)
        ty, span = function.result, function.body.span
        return replace(function, body=Call(own.function, function.params, {}, args, ty, span=span))
    return without_annotations(function)


def without_annotations(function: Function) -> Function:
    """Return a function with the plain functions in place of annotated ones."""
    plain: dict[Expr, Expr] = {
        node: node.function
        for node in post_order(function)
        if isinstance(node, Transform) and node.rule.is_annotation
    }
    if not plain:
        return function
    made = rewrite(function, lambda node: plain.get(node, node))
    assert isinstance(made, Function)
    return made


def has_transforms(function: Function) -> bool:
    """Return whether a transform is still to be expanded, or to be settled, in a function."""
    own = rule_of(function)
    return any(isinstance(n, Transform) and n is not own for n in post_order(function))
