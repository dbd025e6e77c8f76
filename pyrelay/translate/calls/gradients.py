"""`relay.grad` and its kind inside compiled code: in arguments, or in the parameters of models."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar, final

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.model import AllFrozen
from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.catalogue.sites import ModelNotMentioned
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import (
    Binding,
    Call,
    Differentiation,
    Expr,
    Function,
    GlobalVar,
    RefCreate,
    RefRead,
    Rule,
    Transform,
    Tuple,
    Var,
)
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps, let, post_order, run
from ..context import Context, ModelParts, field_of
from ..instances import function_operands
from ..models.passed_models import known_of, model_arguments, model_named, pass_on
from ..names.closures import local_function
from ..names.environment import Bound, LocalFunction
from ..names.flow import Nested, reads
from ..names.mentions import implicit_values, lift, mention, supplying
from ..names.static import static_value
from ..source.definition import Definition, DerivedFunction, Kind, meaning
from . import axes
from .arguments import Callee, Slot, match_arguments, require
from .attributes import static_argument
from .functions import (
    explicit_parts,
    model_field,
    model_operand,
    named_implicits,
    parameter_names,
    without_implicits,
)
from .list_gradients import gradient_in_list

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


def gradient_call(
    cx: Context, node: ast.Call, intrinsic: Intrinsic, given: Sequence[ast.expr] = ()
) -> Steps[Expr]:
    """Translate `relay.grad(f, wrt=...)` or `relay.grad(model, f, args)`. The first is called with
    the arguments `given`, where it is called at once: `relay.grad(f)(x)`."""
    rule = RULES[intrinsic]
    is_vmap = rule is Rule.VMAP
    if node.args and not is_vmap and _names_models(cx, node.args[0]):
        return (yield _in_models(cx, node, rule))
    form = axes.FORM if is_vmap else f"{rule.value}(f, wrt=None, has_aux=False)"
    callee = Callee(rule.value, axes.SLOTS if is_vmap else _OF_FUNCTION, form)
    bound = match_arguments(cx, node, callee)
    if bound is None or not require(cx, node, callee, bound):
        return placeholder(cx.span(node))
    if is_vmap:
        function = yield _function(cx, bound["f"], given)
        return Transform(rule, function, axes.batching(cx, bound), span=cx.span(node))
    if len(node.args) > 1 and static_value(cx, node.args[1]) is None:
        what = f"an argument of the function in `relay.{rule.value}`"
        instead = f"call what it gives: `relay.{rule.value}(f)(x)`"
        return cx.refuse(Unsupported(cx.span(node.args[1]), what, instead))
    if rule.takes_tangents:
        # The arguments come as one tuple.
        first = given[0] if given else None
        given = first.elts if isinstance(first, ast.Tuple | ast.List) else ()
    function = yield _function(cx, bound["f"], given)
    options = Differentiation(*_wrt(cx, bound), _flag(cx, bound.get("has_aux")))
    return Transform(rule, function, options, span=cx.span(node))


def _function(cx: Context, node: ast.expr, given: Sequence[ast.expr]) -> Steps[Expr]:
    """Translate a function that is differentiated, and called with the arguments `given`."""
    known = static_value(cx, node)
    found = None if known is None else meaning(known.value)
    definition = found.definition if isinstance(found, DerivedFunction) else found
    if not isinstance(found, Definition | DerivedFunction) or not isinstance(
        definition, Definition
    ):
        return (yield cx.expression(node))
    return mention(cx, found, cx.span(node), _by_name(cx, definition, given))


def _by_name(cx: Context, definition: Definition, given: Sequence[ast.expr]) -> dict[str, ast.expr]:
    """Return arguments that are written by position by the names of a function's parameters."""
    values = cx.program.signature(definition).values
    return {p.name: node for p, node in zip(values, given, strict=False)}


def _named(node: ast.expr) -> list[ast.expr]:
    """Return the names of the models in the first argument of a transform."""
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _names_models(cx: Context, node: ast.expr) -> bool:
    names = _named(node)
    found = [known_of(cx, n) for n in names]
    if not isinstance(node, ast.Tuple | ast.List) and found[0] is not None and found[0].items:
        return found[0].items.model is not None
    return bool(found) and all(k is not None and k.model is not None for k in found)


def _flag(cx: Context, node: ast.expr | None) -> bool:
    return node is not None and bool(static_argument(cx, node, "`has_aux`", "`True` or `False`"))


def _is_pure(cx: Context, node: ast.expr) -> bool:
    """Return whether an expression is what `relay.with_params` gives."""
    if isinstance(node, ast.Call):
        known = static_value(cx, node.func)
        return known is not None and meaning(known.value) is Intrinsic.WITH_PARAMS
    entry = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    found = entry.function if isinstance(entry, Bound) else None
    return found is not None and found.node is None


def _wrt(cx: Context, bound: dict[str, ast.expr]) -> tuple[tuple[int, ...] | None, bool]:
    """Return the indices of the parameters to differentiate in, and whether one is named bare."""
    node = bound.get("wrt")
    wanted = None if node is None else static_argument(cx, node, "`wrt`", '`wrt="x"`')
    if node is None or wanted is None:
        return (0,) if _is_pure(cx, bound["f"]) else None, True
    names = parameter_names(cx, bound["f"])
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
    apart = node.args[2:]
    if apart and not isinstance(apart[0], ast.Tuple | ast.List):
        return cx.refuse(_apart(cx, node, apart, rule))
    text = f"{rule.value}(model, f, args, has_aux=False)"
    callee = Callee(rule.value, _OF_MODEL, text)
    node, apart_named = without_implicits(cx, node)
    bound = match_arguments(cx, node, callee)
    if bound is None or not require(cx, node, callee, bound):
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
        return (yield gradient_in_list(cx, cx.span(node), bound, rule, has_aux=has_aux))
    models = _models(cx, _named(named))
    for name, model in zip(_named(named), models, strict=True):
        if model.instance.frozen and cx.program.spec(model.instance).is_frozen:
            cx.program.report(AllFrozen(model.instance.definition.name, cx.span(name)))
    given = bound["args"]
    if not isinstance(given, ast.Tuple | ast.List):
        return cx.refuse(_apart(cx, node, [given], rule))
    single = not isinstance(named, ast.Tuple | ast.List)
    has_aux = _flag(cx, bound.get("has_aux"))
    whole = _whole(cx, bound["f"], _named(named), models, given.elts)
    if whole is not None:
        options = Differentiation(tuple(range(len(models))), single, has_aux)
        span = cx.span(node)
        transform = Transform(rule, whole.function, options, span=span)
        args = yield operands(cx, bound["f"], given.elts, whole.passed)
        return Call(transform, (*(m.params for m in models), *args), span=span)
    function, hidden, wrt = yield supplied(cx, bound["f"], models, given.elts, _named(named))
    args = yield operands(cx, bound["f"], given.elts)
    span = cx.span(node)
    transform = Transform(rule, function, Differentiation(wrt, single, has_aux), span=span)
    return Call(transform, (*hidden, *args), span=span)


@final
@dataclass(frozen=True, slots=True)
class _Whole:
    """A function of the parameters of models and of the arguments that are not among these; and
    which of the arguments written are the models."""

    function: Function
    passed: Collection[int]


def _whole(
    cx: Context,
    node: ast.expr,
    names: Sequence[ast.expr],
    models: Sequence[ModelParts],
    given: Sequence[ast.expr],
) -> _Whole | None:
    """Return a relay function as one of the parameters of the models that it is passed, which its
    other mentions of their definitions mean too; None where it is passed none of them."""
    known = static_value(cx, node)
    function = None if known is None else meaning(known.value)
    if not isinstance(function, Definition) or len(names) != len(models):
        return None
    atoms = [model_operand(cx, name) for name in names]
    values = cx.program.signature(function).values
    passed: dict[int, int] = {}
    for place, (argument, parameter) in enumerate(zip(given, values, strict=False)):
        atom = None if parameter.model is None else model_operand(cx, argument)
        if atom is not None and atom in atoms:
            passed[place] = atoms.index(atom)
    if not passed:
        return None
    span = cx.span(node)
    params = [Var(f"{m.instance.definition.name}_params", span=span) for m in models]
    inside = [replace(m, params=p) for m, p in zip(models, params, strict=True)]
    bound = _by_name(cx, function, given)
    uses = model_arguments(cx, bound, cx.program.signature(function))
    name, hidden = with_models(cx, inside, lambda: function_operands(cx, function, span, {}, uses))
    pass_on(cx, bound, name, uses)
    required = cx.program.requirements(function)
    for number, model in enumerate(models):
        if number not in passed.values() and model.instance.definition not in required:
            _not_mentioned(cx, function, model, span)
    args: list[Expr] = []
    own: list[Var] = []
    for place, argument in enumerate(given):
        if place in passed:
            args.append(_anew(cx, argument, inside[passed[place]], span))
        else:
            own.append(Var("argument", span=span))
            args.append(own[-1])
    rest = implicit_values(cx, cx.program.signature(function), span)
    call = Call(GlobalVar(name, span=span), (*hidden, *args, *rest), span=span)
    return _Whole(Function((*params, *own), call, span=span), passed)


def _anew(cx: Context, node: ast.expr, model: ModelParts, span: Span) -> Expr:
    """Return an explicit model whose cell is a new one, with the parameters given."""
    assert isinstance(node, ast.Name)
    memory = field_of(RefRead(model_field(cx, node.id, 0, span), span=span), 1, span)
    content = Tuple((model.params, memory), span=span)
    return Tuple((RefCreate(content, span=span), model.state), span=span)


def _not_mentioned(cx: Context, function: Definition, model: ModelParts, span: Span) -> None:
    definition = model.instance.definition
    cx.program.report(ModelNotMentioned(span, function.name, definition.name))
    cx.program.guesses = True


def operands(
    cx: Context, function: ast.expr, given: Sequence[ast.expr], left_out: Collection[int] = ()
) -> Steps[tuple[Expr, ...]]:
    """Translate the arguments of a function, but for those at the places left out; models are
    passed on where its parameters are models, and are function values elsewhere."""
    known = static_value(cx, function)
    found = None if known is None else meaning(known.value)
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
    known = static_value(cx, bound["f"])
    found = None if known is None else meaning(known.value)
    entry = cx.env.find(bound["f"].id) if isinstance(bound["f"], ast.Name) else None
    local = entry.function if isinstance(entry, Bound) else None
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


def supplied(
    cx: Context,
    node: ast.expr,
    models: Sequence[ModelParts],
    given: Sequence[ast.expr] = (),
    names: Sequence[ast.expr] = (),
) -> Steps[tuple[Expr, tuple[Expr, ...], tuple[int, ...]]]:
    """Translate a function that models are supplied to: give it with the parts of all models it
    needs as leading parameters, these operands, and the indices of the models' parameters. It is
    called with the arguments `given`, where they are known."""
    known = static_value(cx, node)
    found = None if known is None else meaning(known.value)
    if isinstance(found, Definition):
        return _supplied_definition(cx, node, found, models, given)
    entry = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    local = entry.function if isinstance(entry, Bound) else None
    syntax = local.node if isinstance(local, LocalFunction) else node
    if not isinstance(syntax, ast.Lambda | ast.FunctionDef):
        if known is not None:
            return lift(cx, known, ast.unparse(node), cx.span(node)), (), ()
        what = "a function that is not known by name"
        instead = "name a relay function, or write a `def` or lambda here"
        cx.program.report(Unsupported(cx.span(node), what, instead))
        return placeholder(cx.span(node)), (), ()
    return (yield _supplied_local(cx, syntax, models, names))


def with_models(cx: Context, models: Sequence[ModelParts], make: Callable[[], T]) -> T:
    """Return what `make` gives where mentions of the models mean these instances."""
    before, own = dict(cx.implicit), cx.own
    cx.implicit.update((m.instance.definition, m) for m in models)
    if own is not None and any(m.instance.definition is own.instance.definition for m in models):
        cx.own = None
    try:
        return make()
    finally:
        cx.own = own
        cx.implicit.clear()
        cx.implicit.update(before)


def _supplied_definition(
    cx: Context,
    node: ast.expr,
    function: Definition,
    models: Sequence[ModelParts],
    given: Sequence[ast.expr],
) -> tuple[Expr, tuple[Expr, ...], tuple[int, ...]]:
    span = cx.span(node)
    bound = _by_name(cx, function, given)
    passed = model_arguments(cx, bound, cx.program.signature(function))
    name, hidden = with_models(
        cx, models, lambda: function_operands(cx, function, span, {}, passed)
    )
    pass_on(cx, bound, name, passed)
    is_model = function.kind is Kind.MODEL
    order = [function] if is_model else list(cx.program.requirements(function))
    wrt: list[int] = []
    for model in models:
        definition = model.instance.definition
        if definition in order:
            wrt.append(2 * order.index(definition))
        else:
            _not_mentioned(cx, function, model, span)
    callee = GlobalVar(name, span=span)
    signature = cx.program.signature(function)
    if not signature.implicit:
        return callee, hidden, tuple(wrt)
    leading = tuple(Var("part", span=span) for _ in hidden)
    params = (*leading, *(Var(p.name, span=span) for p in signature.explicit))
    call = Call(callee, (*params, *implicit_values(cx, signature, span)), span=span)
    return Function(params, call, span=span), hidden, tuple(wrt)


def _supplied_local(
    cx: Context, syntax: Nested, models: Sequence[ModelParts], names: Sequence[ast.expr]
) -> Steps[tuple[Expr, tuple[Expr, ...], tuple[int, ...]]]:
    """Translate a nested function once more, with the models as its leading parameters. Where it
    captures a model by one of the `names`, it means these parameters too."""
    span = cx.span(syntax.body) if isinstance(syntax, ast.Lambda) else cx.span(syntax)
    leading: list[Var] = []
    inside: list[ModelParts] = []
    for model in models:
        name = model.instance.definition.name
        params, state = Var(f"{name}_params", span=span), Var(f"{name}_state", span=span)
        leading += [params, state]
        inside.append(ModelParts(params, state, model.instance))
    mark = cx.env.mark()
    cells = _captured(cx, syntax, inside, names, span)
    # The walk runs to its end while the models are in place.
    function = with_models(cx, inside, lambda: run(local_function(cx, syntax)))
    cx.env.undo(mark)
    yield from ()
    body = let(cells, function.body)
    mentioned = {node for node in post_order(body) if isinstance(node, Var)}
    for model in inside:
        if model.params not in mentioned:
            cx.program.report(
                ModelNotMentioned(span, function.name or "lambda", model.instance.definition.name)
            )
            cx.program.guesses = True
    full = replace(function, params=(*leading, *function.params), body=body, span=span)
    hidden = tuple(e for m in models for e in (m.params, m.state))
    return full, hidden, tuple(range(0, 2 * len(models), 2))


def _captured(
    cx: Context,
    syntax: Nested,
    models: Sequence[ModelParts],
    names: Sequence[ast.expr],
    span: Span,
) -> list[Binding]:
    """Let the names by which a nested function captures models mean new cells with their
    parameters; return the bindings that make the cells."""
    found: list[Binding] = []
    known = reads(syntax)
    for model, named in zip(models, names, strict=False):
        atom = model_operand(cx, named)
        for name in sorted(known):
            entry = cx.env.find(name)
            if atom is None or not isinstance(entry, Bound) or entry.atom is not atom:
                continue
            var = Var(name, span=span)
            found.append(Binding(var, _anew(cx, ast.Name(name), model, span)))
            cx.env.set(name, replace(entry, atom=var))
    return found
