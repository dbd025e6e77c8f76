"""Models that are passed for parameters, as in `train(net, x)`: which they are, and whence."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...diagnostics.catalogue.sites import UnknownModel
from ..context import Context
from ..names.environment import Bound
from ..source.signature import Signature
from .models import Instance
from .optimizer_places import ParameterPlace, Place


def model_arguments(
    cx: Context, bound: Mapping[str, ast.expr], signature: Signature
) -> tuple[tuple[str, Instance], ...]:
    """Return which models are passed for the parameters that are models."""
    found: list[tuple[str, Instance]] = []
    for parameter in signature.parameters:
        if parameter.model is not None and parameter.name in bound:
            model = model_named(cx, bound[parameter.name])
        elif parameter.params is not None and parameter.name in bound:
            model = record_named(cx, bound[parameter.name])
        else:
            continue
        if model is not None:
            found.append((parameter.name, model))
    return tuple(found)


def record_named(cx: Context, node: ast.expr) -> Instance | None:
    """Return the model of whose parameters an argument is a record, where its name says so; else
    it is one with the static arguments that are the defaults."""
    match node:
        case ast.Name(id=name):
            entry = cx.env.find(name)
            return entry.record if isinstance(entry, Bound) else None
        case ast.Attribute(value=ast.Name(id=name), attr="params"):
            entry = cx.env.find(name)
            return entry.model if isinstance(entry, Bound) else None
        case _:
            return None


def pass_on(
    cx: Context,
    bound: Mapping[str, ast.expr],
    function: str,
    models: tuple[tuple[str, Instance], ...],
) -> None:
    """Note that models are passed for parameters of a function, which is named as translated."""
    for name, _ in models:
        cx.program.updates.pass_on(places_of(cx, bound[name]), ParameterPlace(function, name))


def model_named(cx: Context, node: ast.expr) -> Instance | None:
    """Return the model that a name stands for; None when it is none, which is reported."""
    entry = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    if isinstance(entry, Bound) and entry.model is not None:
        cx.program.updates.unite(entry.places)
        return entry.model
    cx.program.report(UnknownModel(cx.span(node)))
    return None


def places_of(cx: Context, node: ast.expr) -> tuple[Place, ...]:
    """Return where the model that a name stands for comes from."""
    entry = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    return entry.places if isinstance(entry, Bound) else ()
