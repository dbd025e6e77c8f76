"""Models that are passed for parameters, as in `train(net, x)`: which they are, and whence."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...annotations import ModelAnnotation, ParamsAnnotation
from ...diagnostics.catalogue.sites import UnknownModel
from ...diagnostics.source import Span
from ...ir.expr import Expr
from ..names.static import static_value
from ..program.context import Context
from ..program.environment import Bound
from ..program.instances import complete_statics, function_operands
from ..program.model_origins import ModelOrigin, ParameterOrigin
from ..program.models import ModelInstance
from ..program.signature import Signature
from ..source.definition import Definition


def model_arguments(
    cx: Context, bound: Mapping[str, ast.expr], signature: Signature
) -> tuple[tuple[str, ModelInstance], ...]:
    """Return which models are passed for the parameters that are models, or lists of models."""
    found: list[tuple[str, ModelInstance]] = []
    for parameter in signature.parameters:
        if parameter.model is not None and parameter.name in bound:
            model = model_named(cx, bound[parameter.name], is_list=parameter.is_list)
        elif parameter.params is not None and parameter.name in bound:
            model = record_named(cx, bound[parameter.name])
        else:
            continue
        if model is not None:
            found.append((parameter.name, model))
    return tuple(found)


def known_of(cx: Context, node: ast.expr) -> Bound | None:
    """Return which model or record, or list of some, an expression is; None for anything else."""
    match node:
        case ast.Name(id=name):
            entry = cx.env.find(name)
            if not isinstance(entry, Bound) or not (entry.model or entry.record or entry.items):
                return None
            return Bound(
                model=entry.model, places=entry.places, record=entry.record, items=entry.items
            )
        case ast.Subscript(value=ast.Name() as items, slice=place):
            known = known_of(cx, items)
            return known if known is None or isinstance(place, ast.Slice) else known.items
        case ast.List(elts=[_, *_] as elts):
            return list_of(cx, [known_of(cx, e) for e in elts])
        case ast.Call(func=function, args=[items], keywords=[]):
            known = static_value(cx, function)
            called = None if known is None else known.value
            return known_of(cx, items) if called in (reversed, list) else None
        case _:
            return None


def list_of(cx: Context, found: Sequence[Bound | None]) -> Bound | None:
    """Return the list of some models; None unless all are models of one kind."""
    first = found[0]
    if first is None or any(k is None or k.model is None or k.model != first.model for k in found):
        return None
    places = dict.fromkeys(p for k in found if k is not None for p in k.places)
    cx.program.updates.unite(tuple(places))
    return Bound(items=Bound(model=first.model, places=tuple(places)))


def note_elements(cx: Context, target: ast.expr, items: ast.expr) -> None:
    """Note which models or records the targets of a loop over an expression are."""
    called, args = None, list[ast.expr]()
    if isinstance(items, ast.Call):
        known = static_value(cx, items.func)
        called, args = None if known is None else known.value, items.args
    targets = target.elts if isinstance(target, ast.Tuple | ast.List) else None
    if called is zip and targets is not None and len(targets) == len(args):
        for each, inside in zip(targets, args, strict=True):
            note_elements(cx, each, inside)
    elif called is enumerate and targets is not None and len(targets) == 2 and args:
        note_elements(cx, targets[1], args[0])
    elif isinstance(target, ast.Name):
        known = known_of(cx, items)
        note_known(cx, target, None if known is None else known.items)


def note_known(cx: Context, target: ast.expr, known: Bound | None) -> None:
    """Note which model or record a target is, or list of some."""
    entry = cx.named(target)
    if known is not None and isinstance(entry, Bound) and isinstance(target, ast.Name):
        found = replace(
            entry, model=known.model, places=known.places, record=known.record, items=known.items
        )
        cx.env.set(target.id, found)


def record_named(cx: Context, node: ast.expr) -> ModelInstance | None:
    """Return the model of whose parameters an argument is a record, where its name says so; else
    it is one with the static arguments that are the defaults."""
    if isinstance(node, ast.Attribute) and node.attr == "params":
        known = known_of(cx, node.value)
        return None if known is None else known.model
    known = known_of(cx, node)
    return None if known is None else known.record


def annotated_definition(
    annotation: ModelAnnotation | ParamsAnnotation | None,
) -> Definition | None:
    """Return the definition that `Model[net]` or `Params[net]` names, if it names one."""
    found = None if annotation is None else getattr(annotation.definition, "__relay__", None)
    return found if isinstance(found, Definition) else None


def annotated_record(cx: Context, annotation: ParamsAnnotation, span: Span) -> ModelInstance | None:
    """Return the model of whose parameters a local function's parameter is a record: one that a
    local name around stands for, or else one with the static arguments that are the defaults."""
    wanted = annotated_definition(annotation)
    entries = [cx.env.find(name) for name in cx.env.names()]
    around = [i for e in entries if isinstance(e, Bound) for i in (e.record, e.model) if i]
    found = next((i for i in around if i.definition is wanted), None)
    if found is not None or wanted is None:
        return found
    return ModelInstance(wanted, complete_statics(cx.program, wanted, {}, span))


def passed_operands(
    cx: Context,
    definition: Definition,
    span: Span,
    bound: Mapping[str, ast.expr],
    statics: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[str, tuple[Expr, ...]]:
    """Return the name of the translation of a definition for the models among its arguments, and
    the operands for the models it needs."""
    models = model_arguments(cx, bound, cx.program.signature(definition))
    function, hidden = function_operands(cx, definition, span, statics, models)
    for name, _ in models:
        cx.program.updates.pass_on(places_of(cx, bound[name]), ParameterOrigin(function, name))
    return function, hidden


def model_named(cx: Context, node: ast.expr, *, is_list: bool = False) -> ModelInstance | None:
    """Return the model that an expression stands for, or whose instances a list holds; None when it
    is none, which is reported."""
    known = known_of(cx, node)
    found = known.items if known is not None and is_list else known
    if found is not None and found.model is not None:
        cx.program.updates.unite(found.places)
        return found.model
    cx.program.report(UnknownModel(cx.span(node)))
    return None


def places_of(cx: Context, node: ast.expr) -> tuple[ModelOrigin, ...]:
    """Return where a model, or the models in a list, come from."""
    known = known_of(cx, node)
    found = known.items if known is not None and known.items is not None else known
    return () if found is None else found.places
