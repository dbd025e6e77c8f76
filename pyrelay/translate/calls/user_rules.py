"""Functions with a derivative of the user's own or under a policy: decorated ones, and
`relay.custom_vjp`, `relay.custom_jvp`, `relay.checkpoint` and `relay.autocast` in code."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ...diagnostics.catalogue.derivatives import RuleNeedsModels
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.signatures import BadValue
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import Call, Differentiation, Expr, Function, GlobalVar, Rule, Transform
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps
from ..names.static import called_meaning, static_meaning, static_value
from ..program.context import Context
from ..program.instances import function_operands
from ..source.definition import (
    DEFAULT_POLICY,
    POLICIES,
    Definition,
    DerivedFunction,
    UserRules,
    policy_names,
)
from ..source.residual import Residual
from ..source.syntax import arguments_of
from .arguments import Callee, Slot, bind_arguments
from .mentions import mention
from .residual_calls import residual_mention

_RULES: Final = {
    Intrinsic.CUSTOM_VJP: (Rule.CUSTOM_VJP, ("fwd", "bwd")),
    Intrinsic.CUSTOM_JVP: (Rule.CUSTOM_JVP, ("rule",)),
}


def applied_rules(cx: Context, node: ast.Call) -> Steps[Expr] | None:
    """Return the steps that translate `relay.custom_vjp(fwd, bwd)(f)` or
    `relay.custom_jvp(rule)(f)`; None for any other call."""
    found = called_meaning(cx, node.func)
    if not isinstance(node.func, ast.Call) or not isinstance(found, Intrinsic):
        return None
    return _applied(cx, node, node.func, found) if found in _RULES else None


def _applied(cx: Context, node: ast.Call, rules: ast.Call, intrinsic: Intrinsic) -> Steps[Expr]:
    rule, names = _RULES[intrinsic]
    form = f"{rule.value}({', '.join(names)})"
    callee = Callee(rule.value, tuple(Slot(n, True) for n in names), form)
    bound = bind_arguments(cx, rules, callee)
    if bound is None:
        return placeholder(cx.span(node))
    if len(node.args) != 1 or node.keywords:
        instead = f"call what it gives: `relay.{form}(f)(x)`"
        what = f"this form of `relay.{rule.value}`"
        return cx.refuse(Unsupported(cx.span(node), what, instead))
    function = yield cx.expression(node.args[0])
    functions: list[Expr] = []
    for name in names:
        functions += ((yield cx.expression(bound[name])),)
    options = Differentiation()
    return Transform(rule, function, options, rules=tuple(functions), span=cx.span(node))


def policy_call(
    cx: Context,
    node: ast.Call,
    rule: Rule,
    statics: Mapping[str, ast.expr] = MappingProxyType({}),
    made: Steps[Expr] | None = None,
) -> Steps[Expr]:
    """Translate `relay.checkpoint(f, policy=...)` or `relay.autocast(f, policy=...)`, which is
    called with the static arguments, where it is called at once. `made` is the translation of an
    `f` that is a transform itself."""
    span = cx.span(node)
    slots = (Slot("f", required=True), Slot("policy", required=False))
    default = DEFAULT_POLICY[rule]
    callee = Callee(rule.value, slots, f"{rule.value}(f, policy={default!r})")
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(span)
    names = policy_names(rule, default)
    if "policy" in bound:
        known = static_value(cx, bound["policy"])
        names = None if known is None else policy_names(rule, known.value)
    if names is None:
        what, why = f"`policy` of `{rule.value}`", f"it is {POLICIES[rule]}"
        cx.program.report(BadValue(cx.span(bound["policy"]), what, why))
        return placeholder(span)
    found = static_meaning(cx, bound["f"])
    if statics and isinstance(found, Definition | DerivedFunction):
        function = mention(cx, found, cx.span(bound["f"]), statics)
    else:
        function = yield cx.expression(bound["f"]) if made is None else made
    return Transform(rule, function, Differentiation(), policy=names, span=span)


def with_rules(cx: Context, name: str, function: Function) -> Function:
    """Return a translated function as one with the derivatives and policies of its definition; the
    function itself becomes another one of the program where it has a derivative."""
    for rules in cx.definition.rules:
        if rules.rule in POLICIES:
            function = _under_policy(function, rules)
        else:
            function = _with_derivative(cx, name, function, rules)
    return function


def _with_derivative(cx: Context, name: str, function: Function, rules: UserRules) -> Function:
    value = cx.program.fresh_name(f"{name}.value")
    cx.program.functions[value] = function
    span, places = _place(cx, len(rules.functions))
    if cx.instance.implicit or cx.instance.models:
        cx.program.report(RuleNeedsModels(span, rules.rule.value, cx.definition.name))
        return function
    found = tuple(_rule(cx, d, s, rules) for d, s in zip(rules.functions, places, strict=True))
    params = tuple(replace(p) for p in function.params)
    plain = GlobalVar(value, span=span)
    transform = Transform(rules.rule, plain, Differentiation(), rules=found, span=span)
    inner = Call(transform, params, span=span)
    return replace(function, params=params, body=inner)


def _under_policy(function: Function, rules: UserRules) -> Function:
    """Return a function whose body is under a transform with a policy: a local function that
    captures what the body uses, models included."""
    span = function.span
    body = Function((), function.body, name=function.name, span=span)
    policy, options = rules.policy, Differentiation()
    transform = Transform(rules.rule, body, options, policy=policy, span=span)
    return replace(function, body=Call(transform, (), span=span))


def _rule(cx: Context, definition: Definition | Residual, span: Span, rules: UserRules) -> Expr:
    """Return the mention of a rule, at the static arguments of the function that it is for."""
    if isinstance(definition, Residual):
        return residual_mention(cx, definition, span)
    names = {p.name for p in cx.program.signature(definition).statics}
    given = {n: v for n, v in cx.instance.statics if n in names}
    if cx.program.requirements(definition):
        cx.program.report(RuleNeedsModels(span, rules.rule.value, definition.name))
        return placeholder(span)
    name, _ = function_operands(cx, definition, span, given)
    return GlobalVar(name, span=span)


def _place(cx: Context, count: int) -> tuple[Span, list[Span]]:
    """Return where a derivative is written, and where each of its rules is."""
    head = cx.definition.source.head
    for node in cx.definition.source.node.decorator_list:
        if not isinstance(node, ast.Call) or static_meaning(cx, node.func) not in _RULES:
            continue
        written = arguments_of(node)
        if len(written) == count:
            return cx.span(node), [cx.span(n) for n in written]
    return head, [head] * count
