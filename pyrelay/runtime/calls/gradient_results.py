"""Gradients in the parameters of models as scripts get them: mappings by names of parameters."""

from __future__ import annotations

from typing import Any

from ...ir.expr import Differentiation, Rule
from ..border.fast_flatten import Reader
from ..models.model import Model
from ..models.model_io import Source
from ..models.records import Grads


def with_grads(
    rule: Rule, result: Any, models: tuple[Source, ...], options: Differentiation
) -> Any:
    """Return a result with its gradients as mappings by parameter name."""
    single = options.single
    if rule is Rule.JVP:
        return result
    if rule in (Rule.GRAD, Rule.HVP) and not options.has_aux:
        return _grads(result, models, single=single)
    first, second = result
    if rule is Rule.GRAD:
        return _grads(first, models, single=single), second
    return first, _grads(second, models, single=single)


def of_parts(model: Source, tree: Any, reader: Reader) -> Grads:
    """Return a gradient that may have parts of tensors in the place of tensors."""
    parts = reader((tree,))
    like = model.flat_params() if isinstance(model, Model) else tuple(model.values())
    return Grads(model.home, tree, parts, like)


def _grads(tree: Any, models: tuple[Source, ...], *, single: bool) -> Any:
    trees = (tree,) if single else tree
    found = tuple(Grads(m.home, t) for m, t in zip(models, trees, strict=True))
    return found[0] if single else found
