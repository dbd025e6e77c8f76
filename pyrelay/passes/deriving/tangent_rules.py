"""Functions whose derivative a user wrote in forward mode: calls of the rule, leaf by leaf.

The rule of a function `f` has the type of `jvp(f)`. Forward mode calls it; reverse mode transposes
the call in the tangents, in which the rule is linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...diagnostics.catalogue.derivatives import CapturedIsVaried
from ...ir.expr import Expr, Function, GlobalVar, Rule, Transform, Var, type_of
from ...ir.names import Names
from ...ir.types import FnType
from ...operators.builder import Builder, Value
from .copying import Copier
from .cotangents.masks import bits, ones
from .ruled import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...diagnostics.diagnostic import Problem
    from .workspace import Workspace


def has_tangent_rule(function: Function) -> bool:
    """Return whether a function has a derivative that its user wrote for forward mode."""
    rule = rule_of(function)
    return rule is not None and rule.rule is Rule.CUSTOM_JVP


def captured_is_varied(space: Workspace, function: Function, varied: int) -> Problem | None:
    """Return the mistake of a ruled function that captures a value which is differentiated."""
    rule = rule_of(function)
    assert rule is not None
    params = function.params
    places = [p for p in params for _ in space.leaves.of(type_of(p))]
    hidden = sum(space.leaves.width(type_of(p)) for p in params[: rule.captures])
    lost = bits(varied & ones(hidden))
    if not lost:
        return None
    return CapturedIsVaried(rule.span, rule.rule.value, places[lost[0]].name)


def pushed(space: Workspace, source: Function, varied: int, moved: int, name: str) -> Function:
    """Return the function that calls the rule of another one, under a name.

    Masks count the leaves of all parameters, or of the result. It takes the parameters of `source`
    and the tangents of the leaves in `varied`, and returns a tuple of the value and the tangents of
    the leaves in `moved`.
    """
    rule = rule_of(source)
    assert rule is not None
    span = source.span.derived(f"derivative of {source.name}")
    builder = Builder(span, Names())
    copier = Copier(builder.names)
    params = [copier.fresh(p) for p in source.params]
    places = [(p, leaf) for p in params for leaf in space.leaves.of(type_of(p))]
    tangents = {
        place: Var(builder.names.fresh(f"d_{places[place][0].name}"), places[place][1], span=span)
        for place in bits(varied)
    }
    whole = _call(space, builder, rule, params, [tangents.get(i) for i in range(len(places))])
    value, tangent = whole[0], whole[1]
    leaves = space.border.incoming(builder, tangent, tangent.ty)
    result = builder.tuple((value, *(builder.value(leaves[i]) for i in bits(moved))))
    every = (*params, *tangents.values())
    ty = FnType(tuple(type_of(p) for p in every), result.ty, source.type_params)
    return Function(
        every,
        builder.block(result),
        result.ty,
        source.type_params,
        name,
        source.assumptions,
        ty=ty,
        span=span,
    )


def _call(
    space: Workspace,
    builder: Builder,
    rule: Transform,
    params: Sequence[Var],
    tangents: Sequence[Expr | None],
) -> Value:
    """Return the call of a rule at parameters, with the tangents of all their leaves; None for
    zero."""
    captured, own = params[: rule.captures], params[rule.captures :]
    pending = iter(tangents)
    for param in captured:
        for _ in space.leaves.of(type_of(param)):
            next(pending)
    moved: list[Value] = []
    for index, param in enumerate(own):
        ty = type_of(param)
        leaves = iter([next(pending) for _ in space.leaves.of(ty)])
        if index in rule.options.indices:
            moved.append(space.border.gradient(builder, builder.value(param), ty, leaves))
    args = [builder.value(p) for p in captured]
    args += (builder.tuple([builder.value(p) for p in own]), builder.tuple(moved))
    (mention,) = rule.rules
    assert isinstance(mention, GlobalVar)
    return space.store.call(builder, mention.name, args)
