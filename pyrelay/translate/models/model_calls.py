"""Calls of compiled code on models: exporting and binding them, their parameters."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.names import UnknownAttribute
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import Binding, Call, Constructor, Expr, Function, GlobalVar, RefRead, Tuple, Var
from ...ir.intrinsics import Intrinsic
from ...ir.module import AdtDef, ConstructorDef
from ...ir.traverse import Steps, let, run
from ...ir.types import TypeVar
from ..calls.arguments import Callee, Slot, bind_arguments
from ..calls.attributes import static_argument
from ..calls.functions import defaults_of, explicit_parts, parameter_names
from ..calls.mentions import implicit_values
from ..calls.passed_models import model_named
from ..names.static import static_meaning
from ..program.context import Context, ModelParts, field_of
from ..program.environment import Bound, LocalFunction
from ..program.instances import complete_statics, function_operands
from ..program.models import ModelInstance, ModelSpec, SubModelSpec, no_state
from ..program.program import ModelVar
from ..source.definition import Definition, DefinitionKind
from ..source.scope import nearest
from ..source.syntax import keyword_argument
from ..subset.migration_hints import OF_VALUES
from .supplied_models import supplied, with_models
from .tied_shapes import tied


def export_model(cx: Context, node: ast.Call) -> Expr:
    """Translate `relay.export_model(model)`: a value that keeps the parameters and the state."""
    callee = Callee("export_model", (Slot("model", required=True),), "export_model(model)")
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(cx.span(node))
    model = model_named(cx, bound["model"])
    if model is None or not isinstance(bound["model"], ast.Name):
        return placeholder(cx.span(node))
    span = cx.span(node)
    parts = explicit_parts(cx, bound["model"].id, model, span)
    spec = cx.program.spec(parts.instance)
    state = run(_read_state(spec, parts.state, span))
    name = exported_type(cx, parts.instance)
    return Call(Constructor(name, name, span=span), (parts.params, state), span=span)


def _read_state(spec: ModelSpec, state: Expr, span: Span) -> Steps[Expr]:
    fields: list[Expr] = []
    for place, part in enumerate(spec.state):
        inside = field_of(state, place, span)
        if isinstance(part, SubModelSpec):
            fields.append((yield _read_state(part.model, inside, span)))
        else:
            fields.append(RefRead(inside, span=span))
    return Tuple(tuple(fields), span=span)


def exported_type(cx: Context, instance: ModelInstance) -> str:
    """Return the name of the data type of exported instances of a model, made on first use."""
    for name, known in cx.program.exports.items():
        if known == instance:
            return name
    name = cx.program.fresh_name(f"Exported_{instance.definition.name}")
    cx.program.exports[name] = instance
    params, state = TypeVar("params"), TypeVar("state")
    constructor = ConstructorDef(name, (params, state), ("params", "state"))
    span = instance.definition.source.head
    cx.program.adts[name] = AdtDef(name, (params, state), (constructor,), span)
    return name


def bind(cx: Context, node: ast.Call, name: str, model: ModelInstance) -> Steps[Expr]:
    """Translate `model.bind(f)`: the function `f` with this model supplied."""
    span = cx.span(node)
    callee = Callee("bind", (Slot("f", required=True),), "bind(f)")
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(span)
    parts = explicit_parts(cx, name, model, span)
    function, hidden, _ = yield supplied(cx, bound["f"], [parts])
    return partial(cx, bound["f"], function, hidden, span)


def partial(
    cx: Context, node: ast.expr, function: Expr, hidden: Sequence[Expr], span: Span
) -> Expr:
    """Return a function with its leading operands supplied."""
    names = parameter_names(cx, node) or ()
    params = tuple(Var(n, span=span) for n in names)
    return Function(params, Call(function, (*hidden, *params), span=span), span=span)


def with_params(cx: Context, node: ast.Call) -> Expr:
    """Translate `relay.with_params(f)`: the function `f` with the parameters of its model as its
    first argument."""
    span = cx.span(node)
    named = keyword_argument(node, "f")
    given = node.args[0] if node.args else named
    function = static_meaning(cx, given)
    model = _one_model(cx, function) if isinstance(function, Definition) else None
    statics = cx.program.signature(model).statics if model is not None else ()
    slots = (Slot("f", required=True), *(Slot(p.name, False, True) for p in statics))
    hyper = "".join(f", {p.name}=..." for p in statics)
    callee = Callee("with_params", slots, f"with_params(f{hyper})")
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(span)
    required = None
    if isinstance(function, Definition) and model is not None:
        required = _pure_instance(cx, function, model, bound, span)
    if not isinstance(function, Definition) or required is None:
        what = "`relay.with_params` of this function"
        instead = "name a relay function that mentions exactly one model"
        return cx.refuse(Unsupported(span, what, instead))
    spec = cx.program.spec(required)
    if spec.has_state:
        what = f"`relay.with_params` where `{spec.definition.name}` has state"
        instead = "pass the model: `relay.grad(model, f, args)`"
        return cx.refuse(Unsupported(span, what, instead))
    key = (function, required)
    if key not in cx.program.pure:
        cx.program.pure[key] = _define_pure(cx, function, required, span)
    pure = GlobalVar(cx.program.pure[key], span=span)
    signature = cx.program.signature(function)
    if not signature.implicit:
        return pure
    params = tuple(Var(n, span=span) for n in ("params", *(p.name for p in signature.explicit)))
    call = Call(pure, (*params, *implicit_values(cx, signature, span)), span=span)
    return Function(params, call, span=span)


def _define_pure(cx: Context, function: Definition, required: ModelInstance, span: Span) -> str:
    """Define the global function of a record of parameters and of the function's own arguments;
    being global it serves every size."""
    name = cx.program.fresh_name(f"{function.name}_of_params")
    params = Var("params", span=span)
    cx.program.model_vars.append(ModelVar(name, params, "params", required))
    parts = ModelParts(params, no_state(cx.program.spec(required), span), required)
    callee, hidden = with_models(cx, [parts], lambda: function_operands(cx, function, span, {}))
    signature = cx.program.signature(function)
    values = tuple(Var(p.name, p.ty, span=p.span) for p in signature.values)
    cx.program.functions[name] = Function(
        (params, *values),
        Call(GlobalVar(callee, span=span), (*hidden, *values), span=span),
        signature.result,
        signature.type_params,
        name,
        span=span,
    )
    return name


def _one_model(cx: Context, function: Definition) -> Definition | None:
    """Return the one model that a function mentions; None if it is not one."""
    if function.kind is DefinitionKind.MODEL:
        return function
    required = cx.program.requirements(function)
    return next(iter(required)) if len(required) == 1 else None


def _pure_instance(
    cx: Context, function: Definition, model: Definition, bound: dict[str, ast.expr], span: Span
) -> ModelInstance:
    """Return the model that a function mentions, in evaluation mode. Its static arguments are those
    that are written here, or in the function; else those of the models of this kind at hand."""
    given = {
        name: static_argument(cx, node, f"`{name}` of `{model.name}`", "a number")
        for name, node in bound.items()
        if name != "f"
    }
    written = (
        {} if function.kind is DefinitionKind.MODEL else cx.program.requirements(function)[model]
    )
    statics = {**_at_hand(cx, model), **written, **given}
    return ModelInstance(model, complete_statics(cx.program, model, statics, span))


def _at_hand(cx: Context, model: Definition) -> dict[str, Any]:
    """Return the static arguments of the instances of a model that are in scope, if they agree."""
    entries = (cx.env.find(name) for name in cx.env.names())
    uses = (e.model for e in entries if isinstance(e, Bound))
    found = {u.statics for u in uses if u is not None and u.definition is model}
    known = cx.implicit.get(model)
    found |= set() if known is None else {known.instance.statics}
    return dict(found.pop()) if len(found) == 1 else {}


def pure_function(cx: Context, name: str, value: ast.expr) -> LocalFunction | None:
    """Return the signature of what `relay.with_params` gives, if an expression is that."""
    if not isinstance(value, ast.Call) or not value.args:
        return None
    if static_meaning(cx, value.func) is not Intrinsic.WITH_PARAMS:
        return None
    names = parameter_names(cx, value.args[0]) or ()
    return LocalFunction(name, ("params", *names), defaults_of(cx, value.args[0]), None, True)


def model_attribute(cx: Context, node: ast.Attribute, name: str, model: ModelInstance) -> Expr:
    """Return an attribute of an explicit model: its parameters."""
    span = cx.span(node)
    if node.attr == "params":
        params = Var("params", span=span)
        found = Binding(params, explicit_parts(cx, name, model, span).params)
        shapes = Binding(Var("shapes", span=span), tied(cx, model, params))
        return let([found, shapes], params)
    near = nearest(node.attr, ("params", "bind"))
    instead = OF_VALUES.get(node.attr)
    if instead is None and near is None:
        instead = f"call the model as a whole, `{name}(...)`; its parameters are `{name}.params`"
    return cx.refuse(UnknownAttribute(span, f"the model `{name}`", node.attr, near, instead))
