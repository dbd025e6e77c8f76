"""`relay.grad` and its kind inside compiled code: in arguments, or in the parameters of models."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.model import AllFrozen
from ...diagnostics.catalogue.signatures import WrongArguments
from ...ir.constant import placeholder
from ...ir.expr import (
    Call,
    Constructor,
    Differentiation,
    Expr,
    Function,
    Rule,
    Transform,
    Tuple,
    Var,
)
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps, let, run
from ..calls.arguments import Callee, Slot, bind_arguments
from ..calls.attributes import static_argument
from ..calls.functions import (
    defaults_after,
    defaults_of,
    explicit_parts,
    model_operand,
    named_implicits,
    parameter_names,
    shortened,
    without_implicits,
)
from ..calls.mentions import mention, supplying
from ..calls.passed_models import known_of, model_named
from ..calls.transformed import Taken, taken_by
from ..calls.user_rules import policy_call
from ..names.static import called_meaning, static_meaning, static_value
from ..program.context import Context, ModelParts
from ..program.environment import LocalFunction
from ..source.definition import Definition, DerivedFunction
from ..source.syntax import elements_of, keyword_argument
from . import axes
from .list_gradients import gradient_in_list
from .supplied_models import by_name, supplied, whole

T = TypeVar("T")
RULES: Final = {
    Intrinsic.GRAD: Rule.GRAD,
    Intrinsic.VALUE_AND_GRAD: Rule.VALUE_AND_GRAD,
    Intrinsic.VJP: Rule.VJP,
    Intrinsic.JVP: Rule.JVP,
    Intrinsic.VMAP: Rule.VMAP,
    Intrinsic.HVP: Rule.HVP,
    Intrinsic.HESSIAN: Rule.HESSIAN,
    Intrinsic.JACFWD: Rule.JACFWD,
    Intrinsic.JACREV: Rule.JACREV,
    Intrinsic.LINEARIZE: Rule.LINEARIZE,
}
_OF_FUNCTION: Final = (
    Slot("f", required=True),
    Slot("wrt", required=False),
    Slot("has_aux", required=False),
)
_OF_MODEL: Final = (
    Slot("model", required=True),
    Slot("f", required=True),
    Slot("args", required=True),
    Slot("has_aux", required=False),
)
_ALONG: Final = (*_OF_MODEL[:3], Slot("v", required=True), _OF_MODEL[3])
"""The parameter of transforms in forward mode beside the arguments: the direction."""


def gradient_call(
    cx: Context,
    node: ast.Call,
    intrinsic: Intrinsic,
    given: Sequence[ast.expr | None] = (),
    statics: Mapping[str, ast.expr] = MappingProxyType({}),
) -> Steps[Expr]:
    """Translate `relay.grad(f, wrt=...)` or `relay.grad(model, f, args)`. The first is called with
    the arguments `given`, and the static ones by name, where it is called at once:
    `relay.grad(f)(x)`. None stands for an argument that is left out."""
    rule = RULES[intrinsic]
    is_vmap = rule is Rule.VMAP
    if _is_in_models(cx, node, rule):
        return (yield _in_models(cx, node, rule))
    form = axes.FORM if is_vmap else f"{rule.value}(f, wrt=None, has_aux=False)"
    callee = Callee(rule.value, axes.SLOTS if is_vmap else _OF_FUNCTION, form)
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(cx.span(node))
    if is_vmap:
        function = yield _function(cx, bound["f"], given, statics)
        function, kept = _without_defaults(cx, bound["f"], function, given)
        options = axes.batching(cx, bound)
        if kept and isinstance(options.in_axes, tuple) and kept[-1] < len(options.in_axes):
            options = options.keeping(kept)
        return Transform(rule, function, options, span=cx.span(node))
    if len(node.args) > 1 and static_value(cx, node.args[1]) is None:
        what = f"an argument of the function in `relay.{rule.value}`"
        instead = f"call what it gives: `relay.{rule.value}(f)(x)`"
        return cx.refuse(Unsupported(cx.span(node.args[1]), what, instead))
    if rule.takes_tangents:
        # The arguments come as one tuple.
        first = given[0] if given else None
        given = first.elts if isinstance(first, ast.Tuple | ast.List) else ()
    function = yield _function(cx, bound["f"], given, statics)
    if rule.takes_tangents:
        function, _ = _without_defaults(cx, bound["f"], function, given)
    options = Differentiation(*_wrt(cx, bound), _flag(cx, bound.get("has_aux")))
    return Transform(rule, function, options, span=cx.span(node))


def _function(
    cx: Context,
    node: ast.expr,
    given: Sequence[ast.expr | None],
    statics: Mapping[str, ast.expr],
) -> Steps[Expr]:
    """Translate a function that is differentiated, and called with the arguments `given`."""
    found = static_meaning(cx, node)
    definition = found.definition if isinstance(found, DerivedFunction) else found
    if not isinstance(found, Definition | DerivedFunction) or not isinstance(
        definition, Definition
    ):
        made = made_by(cx, node, given, statics) if statics else None
        return _function_value(cx, (yield cx.expression(node) if made is None else made))
    return mention(cx, found, cx.span(node), {**by_name(cx, definition, given), **statics})


def _without_defaults(
    cx: Context, node: ast.expr, function: Expr, given: Sequence[ast.expr | None]
) -> tuple[Expr, Sequence[int]]:
    """Return a function of the parameters that get the arguments `given`, and their places, where
    the others have defaults; else the function and no places. What has a default is the same for
    all elements of a batch, and is not moved in the direction of a derivative."""
    if any(isinstance(g, ast.Starred) for g in given):
        return function, ()
    kept = [place for place, g in enumerate(given) if g is not None]
    taken = taken_by(cx, node)
    if taken is None:
        taken = Taken(parameter_names(cx, node) or (), defaults_of(cx, node))
    span = cx.span(node)
    short = shortened(function, taken.names, taken.defaults, kept, span) if kept else function
    return short, () if short is function else kept


def made_by(
    cx: Context,
    node: ast.expr,
    given: Sequence[ast.expr | None],
    statics: Mapping[str, ast.expr],
) -> Steps[Expr] | None:
    """Return the translation of a transform that is called at once, with the arguments `given` and
    the static ones by name; None for any other expression."""
    intrinsic = called_meaning(cx, node)
    if not isinstance(node, ast.Call) or not isinstance(intrinsic, Intrinsic):
        return None
    if intrinsic in RULES:
        return gradient_call(cx, node, intrinsic, given, statics)
    if intrinsic in (Intrinsic.CHECKPOINT, Intrinsic.AUTOCAST):
        rule = Rule(intrinsic.value)
        made = made_by(cx, node.args[0], given, statics) if node.args and statics else None
        return policy_call(cx, node, rule, statics, made)
    return None


def transformed_function(cx: Context, name: str, value: ast.expr) -> LocalFunction | None:
    """Return the signature of what a transform in arguments returns, if an expression is that."""
    taken = taken_by(cx, value)
    intrinsic = called_meaning(cx, value)
    if taken is None or not isinstance(value, ast.Call) or not isinstance(intrinsic, Intrinsic):
        return None
    if intrinsic in RULES and _is_in_models(cx, value, RULES[intrinsic]):
        return None
    defaults = {} if intrinsic is Intrinsic.VMAP else taken.defaults
    return LocalFunction(name, taken.names, defaults, None, statics=taken.statics, made=value)


def _is_in_models(cx: Context, node: ast.Call, rule: Rule) -> bool:
    """Return whether a transform is one in the parameters of models."""
    return bool(node.args) and rule is not Rule.VMAP and _names_models(cx, node.args[0])


def _function_value(cx: Context, function: Expr) -> Expr:
    """Return the operand of a transform as a function: a constructor is one of its fields."""
    if not isinstance(function, Constructor) or function.adt not in cx.program.adts:
        return function
    fields = cx.program.adts[function.adt].constructor(function.name).fields
    params = tuple(Var(f"field{i}", span=function.span) for i in range(len(fields)))
    return Function(params, Call(function, params, span=function.span), span=function.span)


def _names_models(cx: Context, node: ast.expr) -> bool:
    names = elements_of(node)
    found = [known_of(cx, n) for n in names]
    if not isinstance(node, ast.Tuple | ast.List) and found[0] is not None and found[0].items:
        return found[0].items.model is not None
    return bool(found) and all(k is not None and k.model is not None for k in found)


def _flag(cx: Context, node: ast.expr | None) -> bool:
    return node is not None and bool(static_argument(cx, node, "`has_aux`", "`True` or `False`"))


def only_differentiated(cx: Context, node: ast.Call) -> int | None:
    """Return the position of the one parameter in which `relay.grad(f, wrt=...)` differentiates, if
    the source determines it."""
    if not node.args:
        return None
    wrt = keyword_argument(node, "wrt")
    names = parameter_names(cx, node.args[0])
    if wrt is None:
        has_one = names is not None and len(names) == 1
        return 0 if has_one or _is_pure(cx, node.args[0]) else None
    known = static_value(cx, wrt)
    match None if known is None else known.value:
        case int(place):
            return place
        case str(name) if names is not None and name in names:
            return names.index(name)
        case _:
            return None


def _is_pure(cx: Context, node: ast.expr) -> bool:
    """Return whether an expression is what `relay.with_params` gives."""
    if isinstance(node, ast.Call):
        return static_meaning(cx, node.func) is Intrinsic.WITH_PARAMS
    found = cx.nested(node)
    return found is not None and found.of_record


def _wrt(cx: Context, bound: dict[str, ast.expr]) -> tuple[tuple[int, ...] | None, bool]:
    """Return the indices of the parameters to differentiate in, and whether one is named bare."""
    node = bound.get("wrt")
    wanted = None if node is None else static_argument(cx, node, "`wrt`", '`wrt="x"`')
    if node is None or wanted is None:
        return (0,) if _is_pure(cx, bound["f"]) else None, True
    names = parameter_names(cx, bound["f"])
    if names is None and (taken := taken_by(cx, bound["f"])) is not None:
        names = taken.names
    items = wanted if isinstance(wanted, tuple) else (wanted,)
    found: list[int] = []
    for item in items:
        if isinstance(item, int):
            found.append(item)
        elif names is not None and item in names:
            found.append(names.index(item))
        else:
            why = f"has no parameter {item!r} to differentiate in"
            text = ast.unparse(bound["f"])
            known = f"{text}({', '.join(names or ('...',))})"
            cx.program.report(WrongArguments(cx.span(node), text, why, known))
            cx.program.guesses = True
    return tuple(found), not isinstance(wanted, tuple)


def _in_models(cx: Context, node: ast.Call, rule: Rule) -> Steps[Expr]:
    """Translate `relay.grad(model, f, args)`: the gradient in the parameters of the models."""
    apart = node.args[2:3] if rule.takes_tangents else node.args[2:]
    if apart and not isinstance(apart[0], ast.Tuple | ast.List):
        return cx.refuse(_apart(cx, node, apart, rule))
    slots = _ALONG if rule.takes_tangents else _OF_MODEL
    names = [slot.name for slot in slots[:-1]]
    callee = Callee(rule.value, slots, f"{rule.value}({', '.join(names)}, has_aux=False)")
    node, apart_named = without_implicits(cx, node)
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(cx.span(node))
    if apart_named is not None:
        bindings, values = yield named_implicits(cx, *apart_named)
        steps = _in_models_of(cx, node, bound, rule)
        return let(bindings, supplying(cx, values, lambda: run(steps)))
    return (yield _in_models_of(cx, node, bound, rule))


def _in_models_of(
    cx: Context, node: ast.Call, bound: dict[str, ast.expr], rule: Rule
) -> Steps[Expr]:
    named = bound["model"]
    update = _update_inside(cx, bound)
    if update is not None:
        return cx.refuse(update)
    known = known_of(cx, named)
    if known is not None and known.items is not None and known.items.model is not None:
        has_aux = _flag(cx, bound.get("has_aux"))
        listed = yield gradient_in_list(cx, cx.span(node), bound, rule, has_aux=has_aux)
        if not isinstance(listed, Call) or not isinstance(listed.callee, Transform):
            return listed
        return (yield _applied(cx, listed.callee, listed.args, bound))
    models = _models(cx, elements_of(named))
    for name, model in zip(elements_of(named), models, strict=True):
        if model.instance.frozen and cx.program.spec(model.instance).is_frozen:
            cx.program.report(AllFrozen(model.instance.definition.name, cx.span(name)))
    given = bound["args"]
    if not isinstance(given, ast.Tuple | ast.List):
        return cx.refuse(_apart(cx, node, [given], rule))
    single = not isinstance(named, ast.Tuple | ast.List)
    has_aux = _flag(cx, bound.get("has_aux"))
    made = whole(cx, bound["f"], elements_of(named), models, given.elts)
    if made is not None:
        options = Differentiation(tuple(range(len(models))), single, has_aux)
        span = cx.span(node)
        transform = Transform(rule, made.function, options, span=span)
        args = yield operands(cx, bound["f"], given.elts, made.passed)
        args += defaults_after(cx, bound["f"], len(given.elts))
        return (yield _applied(cx, transform, (*(m.params for m in models), *args), bound))
    function, hidden, wrt = yield supplied(cx, bound["f"], models, given.elts, elements_of(named))
    span = cx.span(node)
    args = yield operands(cx, bound["f"], given.elts)
    args += defaults_after(cx, bound["f"], len(given.elts))
    transform = Transform(rule, function, Differentiation(wrt, single, has_aux), span=span)
    return (yield _applied(cx, transform, (*hidden, *args), bound))


def _applied(
    cx: Context, transform: Transform, args: tuple[Expr, ...], bound: dict[str, ast.expr]
) -> Steps[Expr]:
    """Return the call of a transform in models; in forward mode, with the direction `v`."""
    span = transform.span
    if not transform.rule.takes_tangents:
        return Call(transform, args, span=span)
    direction = yield cx.expression(bound["v"])
    assert isinstance(transform.options, Differentiation)
    along = Tuple((direction,), span=span) if transform.options.single else direction
    return Call(transform, (Tuple(args, span=span), along), span=span)


def operands(
    cx: Context, function: ast.expr, given: Sequence[ast.expr], left_out: Collection[int] = ()
) -> Steps[tuple[Expr, ...]]:
    """Translate the arguments of a function, but for those at the places left out; models are
    passed on where its parameters are models, and are function values elsewhere."""
    found = static_meaning(cx, function)
    definition = found.definition if isinstance(found, DerivedFunction) else found
    values = cx.program.signature(definition).values if isinstance(definition, Definition) else ()
    taken = {i for i, p in enumerate(values) if p.model is not None}
    translated: list[Expr] = []
    for place, node in enumerate(given):
        if place in left_out:
            continue
        model = model_operand(cx, node) if place in taken else None
        translated.append((yield cx.expression(node)) if model is None else model)
    return tuple(translated)


def _update_inside(cx: Context, bound: dict[str, ast.expr]) -> Unsupported | None:
    """Return the mistake of a function that updates the very model in which it is differentiated:
    the gradient is that of the parameters it starts with, and what it updates is the model."""
    models = {n.id for n in ast.walk(bound["model"]) if isinstance(n, ast.Name)}
    found = static_meaning(cx, bound["f"])
    local = cx.nested(bound["f"])
    syntax: ast.AST | None = None if local is None else local.node
    if isinstance(found, Definition):
        given = getattr(bound["args"], "elts", [])
        parameters = cx.program.signature(found).values
        passed = zip(given, parameters, strict=False)
        models = {p.name for a, p in passed if isinstance(a, ast.Name) and a.id in models}
        syntax = found.source.node
    for node in () if syntax is None else ast.walk(syntax):
        match node:
            case ast.Call(ast.Attribute(attr="update_model_params"), [ast.Name(id=name), *_]):
                if name in models:
                    what = f"an update of `{name}` in a function differentiated in `{name}`"
                    instead = (
                        "move parameters that are values: `relay.with_params(f)` and "
                        "`relay.sgd(params, grads, lr)`"
                    )
                    return Unsupported(cx.span(bound["f"]), what, instead)
            case _:
                pass
    return None


def _apart(cx: Context, node: ast.Call, arguments: Sequence[ast.expr], rule: Rule) -> Unsupported:
    """Return the mistake of arguments that are written one by one instead of as a tuple."""
    first, last = cx.span(arguments[0]), cx.span(arguments[-1])
    model, function = (ast.unparse(a) for a in node.args[:2])
    given = ", ".join(ast.unparse(a) for a in arguments)
    inside = f"({given},)" if len(arguments) == 1 else f"({given})"
    instead = f"write them as a tuple: `relay.{rule.value}({model}, {function}, {inside})`"
    return Unsupported(replace(first, end=last.end), "this form of the arguments", instead)


def _models(cx: Context, nodes: Sequence[ast.expr]) -> list[ModelParts]:
    found: list[ModelParts] = []
    for node in nodes:
        use = model_named(cx, node)
        if use is not None and isinstance(node, ast.Name):
            found.append(explicit_parts(cx, node.id, use, cx.span(node)))
    return found
