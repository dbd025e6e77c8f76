"""Transforms that are made of others: Hessian-vector products, Hessians and jacobians.

A product of a vector with the Hessian is the derivative of the gradient in its direction (forward
over reverse: Pearlmutter, "Fast exact multiplication by the Hessian", 1994). A Hessian is the
jacobian of a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...ir.derived_types.jacobians import consists_of_floats
from ...ir.expr import (
    Binding,
    Call,
    Differentiation,
    Expr,
    Function,
    Rule,
    Transform,
    TupleGet,
    Var,
    function_type,
)
from ...ir.names import Names
from ...ir.traverse import map_bindings, post_order
from ...ir.types import FnType, TupleType
from ...operators.builder import Builder
from .composition import Made, TransformParts
from .data_jacobians import data_jacfwd, data_jacrev
from .jacobians import Along, jacfwd, jacrev

if TYPE_CHECKING:
    from ..deriving.store import Store


def is_jacobian(node: Expr) -> bool:
    """Return whether an expression is a transform that goes along a basis."""
    return isinstance(node, Transform) and node.rule in (Rule.HESSIAN, Rule.JACFWD, Rule.JACREV)


def with_transforms_composed(function: Function, along: Along, store: Store) -> Function:
    """Return a function in A-normal form in which every transform has a deriver.

    `along` says how those that need it go along a basis."""
    nodes = post_order(function)
    if not any(isinstance(n, Transform) and n.rule in COMPOSED for n in nodes):
        return function

    made = map_bindings(function, lambda binding: _composed(binding, along, store))
    assert isinstance(made, Function)
    return made


def _composed(binding: Binding, along: Along, store: Store) -> Iterator[Binding]:
    value = binding.value
    if not isinstance(value, Transform) or value.rule not in COMPOSED:
        yield binding
        return
    parts = TransformParts.of(value, store)
    before, function = COMPOSED[value.rule](parts, along)
    for inner in before:
        yield from _composed(inner, along, store)
    yield replace(binding, value=function)


def _hvp(parts: TransformParts, _: Along) -> Made:
    """Return `fn (primals, tangents) { jvp(grad(f))(primals, tangents).1 }`."""
    gradient = parts.gradient()
    made = function_type(gradient.value)
    given = (TupleType(parts.own), TupleType(parts.wanted))
    both = TupleType((made.result, made.result))
    push = parts.made(Rule.JVP, gradient.var, given, both)
    builder = Builder(parts.span, Names())
    params = parts.variables(builder, given)
    found = builder.bind(Call(push.var, tuple(params), ty=both, span=parts.span))
    return (gradient, push), parts.function(builder, params, found[1])


def _hessian(parts: TransformParts, along: Along) -> Made:
    """Return the jacobian, in forward mode, of the gradient."""
    gradient = parts.gradient()
    outer = replace(parts.transform, rule=Rule.JACFWD, function=gradient.var)
    before, function = _jacfwd(TransformParts.of(outer, parts.store), along)
    return (gradient, *before), function


def _jacfwd(parts: TransformParts, along: Along) -> Made:
    return jacfwd(parts, along) if _is_plain(parts) else data_jacfwd(parts)


def _jacrev(parts: TransformParts, along: Along) -> Made:
    return jacrev(parts, along) if _is_plain(parts) else data_jacrev(parts)


def _is_plain(parts: TransformParts) -> bool:
    return consists_of_floats(TupleType((parts.value, *parts.wanted)))


def _linearize(parts: TransformParts, _: Along) -> Made:
    """Return the function that gives the value, and the transposed pullback."""
    span, wanted = parts.span, TupleType(parts.wanted)
    builder = Builder(span, Names())
    params = parts.variables(builder, parts.own)
    vjp, value, pull = parts.pullback(builder, params)
    # A linear function has the same derivative everywhere, so any cotangent will do.
    push_type = FnType((wanted,), parts.value)
    both = TupleType((wanted, push_type))
    options = Differentiation((0,), single=True)
    transform = Transform(Rule.VJP, pull.atom, options, ty=FnType((parts.value,), both), span=span)
    transposed = builder.bind(transform, "vjp")
    found = builder.bind(Call(transposed.atom, (value.atom,), ty=both, span=span))
    push = builder.bind(TupleGet(found.atom, 1, push_type, span=span), "push")
    inside = Builder(span, builder.names)
    tangents = [Var(builder.names.fresh("d"), ty, span=span) for ty in parts.wanted]
    along = inside.tuple([inside.value(t) for t in tangents])
    moved = inside.bind(Call(push.atom, (along.atom,), ty=parts.value, span=span))
    ty = FnType(parts.wanted, parts.value)
    body = inside.block(moved)
    linear = Function(tuple(tangents), body, parts.value, (), "linear", ty=ty, span=span)
    return (vjp,), parts.function(builder, params, builder.tuple((value, builder.bind(linear))))


COMPOSED: Final[dict[Rule, Callable[[TransformParts, Along], Made]]] = {
    Rule.HVP: _hvp,
    Rule.HESSIAN: _hessian,
    Rule.JACFWD: _jacfwd,
    Rule.JACREV: _jacrev,
    Rule.LINEARIZE: _linearize,
}
"""The writers of the transforms that are composed of others."""
