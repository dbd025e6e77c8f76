"""Gradients in the parameters of models as scripts get them: mappings by names of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from ...ir.expr import Differentiation, Rule
from ...ir.types import TupleType
from ..border.fast_flatten import Reader, leaf_reader
from ..compile.program import Program
from ..models.model_io import ParameterSource
from ..models.records import Grads


def gradient_reader(program: Program) -> Reader | None:
    """Return the reader of the leaves of the gradient of a model; None for a result that is
    none."""
    if program.gradients is None:
        return None
    ty = program.type.result
    for index in program.gradients:
        assert isinstance(ty, TupleType)
        ty = ty.fields[index]
    return leaf_reader((ty,))


Made: TypeAlias = Callable[[Any, Sequence[ParameterSource]], Any]
"""From the result of a transform and the models to what the caller gets."""


def gradient_maker(rule: Rule, options: Differentiation, parts: Reader | None) -> Made:
    """Return the function from results of a transform to those with gradients as mappings; `parts`
    reads the leaves of that of one model, which may be parts of tensors."""

    def whole(result: Any, models: Sequence[ParameterSource]) -> Any:
        return _with_grads(rule, result, models, options)

    def gradient(tree: Any, models: Sequence[ParameterSource]) -> Any:
        assert parts is not None
        model = models[0]
        return Grads(model.home, tree, parts((tree,)), model.shapes)

    def both(result: Any, models: Sequence[ParameterSource]) -> Any:
        value, tree = result
        return value, gradient(tree, models)

    if rule is Rule.VMAP:
        return lambda result, models: result
    if parts is None:
        return whole
    return gradient if rule is Rule.GRAD else both


def _with_grads(
    rule: Rule, result: Any, models: Sequence[ParameterSource], options: Differentiation
) -> Any:
    """Return a result with its gradients as mappings by parameter name."""
    single = options.single
    match rule:
        case Rule.JVP:
            return result
        case Rule.GRAD if options.has_aux:
            gradient, aux = result
            return _grads(gradient, models, single=single), aux
        case Rule.GRAD | Rule.HVP:
            return _grads(result, models, single=single)
        case Rule.HESSIAN:
            rows = (result,) if single else result
            found = [
                _rows(row, m, models, single=single) for row, m in zip(rows, models, strict=True)
            ]
            return found[0] if single else tuple(found)
        case Rule.JACFWD | Rule.JACREV:
            return _jacobian(result, models, single=single)
        case Rule.VJP:
            value, pull = result
            return value, lambda *given: _grads(pull(*given), models, single=single)
        case Rule.LINEARIZE:
            value, push = result
            return value, lambda *along: push(*(getattr(d, "tree", d) for d in along))
        case _:
            value, gradient = result
            return value, _grads(gradient, models, single=single)


def _rows(
    row: Any, model: ParameterSource, models: Sequence[ParameterSource], *, single: bool
) -> dict[str, Any]:
    """Return the rows of a Hessian that belong to the parameters of one model, by their names."""
    names, parts = model.home.blueprint.param_names, _at(_shape(model), row)
    return {n: _grads(part, models, single=single) for n, part in zip(names, parts, strict=True)}


def _jacobian(value: Any, models: Sequence[ParameterSource], *, single: bool) -> Any:
    """Return a jacobian with the derivatives of each tensor of the value as mappings."""
    trees = (value,) if single else value
    if isinstance(trees, tuple) and len(trees) == len(models):
        shapes = (
            m.home.blueprint.params_tree(range(len(m.home.blueprint.param_names))) for m in models
        )
        pairs = list(zip(shapes, trees, strict=True))
        if all(_fits(shape, tree) for shape, tree in pairs):
            return _grads(value, models, single=single)
    if isinstance(value, tuple):
        return tuple(_jacobian(part, models, single=single) for part in value)
    return value


def _shape(model: ParameterSource) -> Any:
    """Return the nested tuple of the parameters of a model, with their numbers in it."""
    blueprint = model.home.blueprint
    return blueprint.params_tree(range(len(blueprint.param_names)))


def _fits(shape: Any, tree: Any) -> bool:
    """Return whether nested tuples have tensors where a shape has parameters."""
    if not isinstance(shape, tuple):
        return isinstance(tree, torch.Tensor)
    return isinstance(tree, tuple) and len(tree) == len(shape) and all(map(_fits, shape, tree))


def _at(shape: Any, tree: Any) -> list[Any]:
    """Return the parts of nested tuples where a shape has parameters, in order."""
    if not isinstance(shape, tuple):
        return [tree]
    return [part for s, t in zip(shape, tree, strict=True) for part in _at(s, t)]


def _grads(tree: Any, models: Sequence[ParameterSource], *, single: bool) -> Any:
    trees = (tree,) if single else tree
    found = tuple(Grads(m.home, t) for m, t in zip(models, trees, strict=True))
    return found[0] if single else found
