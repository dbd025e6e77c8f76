"""Which translation of a function or model a mention means, and the hidden operands it needs.

In a model every mention of another model is a site of its own. Elsewhere a model definition means
the one implicit instance, whose parts are parameters of the function around. A function that
mentions models gets their parts in front of its own arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...diagnostics.catalogue.signatures import BadValue, WrongArguments
from ...diagnostics.catalogue.sites import OtherModel
from ...diagnostics.source import Span
from ...ir.expr import Expr
from ..source.definition import Definition, DefinitionKind, StaticValue, meaning
from ..source.optimizers import OptimizerUse, is_optimizer
from .context import Context, ModelParts, field_of
from .models import ModelInstance, SubSite
from .program import Requirements, SourceProgram

Statics = tuple[tuple[str, StaticValue], ...]


def complete_statics(
    program: SourceProgram, definition: Definition, given: Mapping[str, Any], span: Span
) -> Statics:
    """Return the values of all static parameters: those given, else the defaults."""
    signature = program.signature(definition)
    found: list[tuple[str, StaticValue]] = []
    for parameter in signature.statics:
        value = given.get(parameter.name, parameter.default)
        if parameter.name not in given and parameter.required:
            kind = "" if parameter.static is OptimizerUse else "static "
            why = f"needs its {kind}argument `{parameter.name}`"
            program.report(WrongArguments(span, definition.name, why, signature.text))
            program.guesses = True
            if parameter.static in (int, float, bool, str):
                found.append((parameter.name, parameter.static()))  # any value stands for it
            continue
        assert parameter.static is not None
        if parameter.static is OptimizerUse and not isinstance(value, OptimizerUse):
            value = _default_optimizer(program, value)
        if type(value) is int and parameter.static is float:
            value = float(value)
        if type(value) is not parameter.static:
            what = f"`{parameter.name}` of `{definition.name}`"
            wanted = "Optimizer" if parameter.static is OptimizerUse else parameter.static.__name__
            why = f"it is annotated {wanted}, not {type(value).__name__}"
            program.report(BadValue(span, what, why))
            program.guesses = True
            continue
        found.append((parameter.name, value))
    return tuple(found)


def _default_optimizer(program: SourceProgram, value: Any) -> Any:
    return program.captured_optimizer(value, meaning(value)) if is_optimizer(value) else value


def model_parts(
    cx: Context, definition: Definition, span: Span, given: Mapping[str, Any]
) -> ModelParts:
    """Return the instance of a model that a mention means."""
    if cx.own is not None and cx.own.instance.definition is definition:
        return _same(cx, cx.own, given, span)
    known = cx.implicit.get(definition)
    if known is not None:
        return _same(cx, known, given, span)
    if cx.own is None:
        raise NotSupplied  # which instance it is, and so its static arguments, is not known here
    statics = complete_statics(cx.program, definition, given, span)
    instance = ModelInstance(definition, statics, cx.training)
    return _new_site(cx, instance, definition.name, span)


class NotSupplied(Exception):  # noqa: N818  control flow, not an error
    """A model is mentioned where none is at hand: in a nested function that is only ever given to
    `relay.grad(model, f, args)`, which translates it again with the model."""


def makes_site(cx: Context, value: Any) -> bool:
    """Return whether a mention of a Python object, as a value, is a site in the model around: of
    another model, of a relay function that mentions one, or of a tuple of these."""
    if cx.own is None:
        return False
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, tuple):
            pending += found
            continue
        definition = meaning(found)
        if not isinstance(definition, Definition) or definition is cx.own.instance.definition:
            continue
        models = (
            cx.program.requirements(definition)
            if definition.kind is DefinitionKind.FUNCTION
            else [definition]
        )
        if any(m not in cx.implicit and m is not cx.own.instance.definition for m in models):
            return True
    return False


def _same(cx: Context, parts: ModelParts, given: Mapping[str, Any], span: Span) -> ModelParts:
    """Return the parts, which must have the static arguments given at this mention, if there
    are."""
    have = dict(parts.instance.statics)
    wanted = {n: v for n, v in given.items() if have.get(n) != v}
    if wanted:
        definition = parts.instance.definition
        here = ", ".join(f"{n}={v!r}" for n, v in given.items())
        there = ", ".join(f"{n}={v!r}" for n, v in have.items())
        cx.program.report(OtherModel(span, definition.name, here, there))
    return parts


def _new_site(cx: Context, instance: ModelInstance, operator: str, span: Span) -> ModelParts:
    if cx.sites is None or cx.own is None:
        raise NotSupplied
    name = cx.sites.name((span, operator), cx.wanted, operator, cx.layers, is_model=True)
    instance = replace(instance, frozen=_inside(cx.own.instance.frozen, name))
    place, state_place = cx.sites.add_model(SubSite(name, instance, span))
    params = field_of(cx.own.params, place, span)
    return ModelParts(params, field_of(cx.own.state, state_place, span), instance)


def _inside(frozen: frozenset[str], site: str) -> frozenset[str]:
    """Return the names among `frozen` that belong to a model inside, as they are within it."""
    return frozenset(n.removeprefix(f"{site}.") for n in frozen if n.startswith(f"{site}."))


def function_operands(
    cx: Context,
    definition: Definition,
    span: Span,
    given: Mapping[str, Any],
    models: tuple[tuple[str, ModelInstance], ...] = (),
) -> tuple[str, tuple[Expr, ...]]:
    """Return the name of the translation that a mention of a definition means, and the operands for
    the models it needs."""
    if definition.kind is DefinitionKind.MODEL:
        parts = model_parts(cx, definition, span, given)
        return cx.program.function_name(parts.instance), (parts.params, parts.state)
    required = cx.program.requirements(definition)
    found = [_required(cx, definition, model, span, required) for model in required]
    instance = ModelInstance(
        definition,
        complete_statics(cx.program, definition, given, span),
        models=models,
        implicit=tuple(p.instance for p in found),
    )
    operands = tuple(e for p in found for e in (p.params, p.state))
    return cx.program.function_name(instance), operands


def _required(
    cx: Context, definition: Definition, model: Definition, span: Span, required: Requirements
) -> ModelParts:
    """Return the instance of a model that a function called here mentions."""
    if cx.own is None or cx.own.instance.definition is model or model in cx.implicit:
        return model_parts(cx, model, span, {})
    statics = complete_statics(cx.program, model, required[model], span)
    wanted = cx.wanted
    if wanted is not None and len(required) > 1:
        cx.wanted = f"{wanted}.{model.name}"
    parts = _new_site(
        cx, ModelInstance(model, statics, cx.training), f"{definition.name}.{model.name}", span
    )
    cx.wanted = wanted
    return parts
