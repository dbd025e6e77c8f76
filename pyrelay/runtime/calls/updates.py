"""Updates of models by gradients, as scripts ask for them: all arguments are checked before the
first parameter moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ...diagnostics.catalogue.model import NotAModel
from ...diagnostics.diagnostic import RunError
from ...diagnostics.wording import counted
from ...interrupts import uninterrupted
from ..border.autograd import unrecorded
from ..models.commit import Change, commit
from ..models.model import Model
from ..models.optim import Optimizer, descent
from ..models.records import Grads
from ..values.structure import tensors
from .api_checks import (
    expect_fitting,
    expect_gradients,
    expect_model,
    expect_optimizer,
    expect_rate,
    gradients_of,
)


def update(models: Sequence[Any], grads: Any, lr: Any, optimizer: Any) -> None:
    """Move the parameters of each model against its gradient. Raises RunError, before any moves."""
    if len(models) == 1 and type(lr) is float and optimizer is None and _fits(models[0], grads[0]):
        unrecorded(_update_all, ((models[0], grads[0]),), lr, None)
        return
    if isinstance(grads, Mapping) or len(grads) != len(models):
        what = "an update of a list of models takes a gradient for each"
        found = "one" if isinstance(grads, Mapping) else counted(len(grads), "gradient")
        actual = f"{found} for {counted(len(models), 'model')}"
        raise RunError(NotAModel(what, actual, "write relay.grad(models, loss, (x, y))"))
    fitting = [(m, _fitting(m, g)) for m, g in zip(models, grads, strict=True)]
    if lr is not None:
        expect_rate(lr)
    if optimizer is not None:
        expect_optimizer(optimizer)
    if isinstance(optimizer, torch.optim.Optimizer):
        _step_of_torch(fitting, lr, optimizer)
        return
    if lr is None and optimizer is None:
        way = "write relay.update_model_params(model, grads, lr=0.05)"
        raise RunError(NotAModel("an update takes `lr` or an optimiser", "gradients alone", way))
    unrecorded(_update_all, fitting, lr, optimizer)


def _fits(model: Any, grads: Any) -> bool:
    """Return whether a gradient is certainly one in the parameters of a model."""
    if type(model) is not Model or type(grads) is not Grads:
        return False
    return grads.home.blueprint is model.blueprint


def _fitting(model: Any, grads: Any) -> Any:
    """Return a gradient as a mapping that fits a model. Raises RunError."""
    expect_model(model, "relay.update_model_params")
    if isinstance(grads, tuple):
        grads = gradients_of(model, grads)
    expect_gradients(grads)
    expect_fitting(model, grads)
    return grads


def _update_all(
    fitting: Sequence[tuple[Model, Any]], lr: float | None, optimizer: Optimizer | None
) -> None:
    """Move all models at once: an interrupt comes before or after, and an error before."""
    changes: list[Change] = []
    moved: set[torch.Tensor] = set()
    for model, grads in fitting:
        if moved and not moved.isdisjoint(model.flat_params()):
            # The second step of a model follows from what the first one leaves.
            commit(changes)
            changes, moved = [], set()
        changes += _step(model, grads, lr, optimizer)
        if len(fitting) > 1:
            moved.update(model.flat_params())
    commit(changes)


def _step(model: Model, grads: Any, lr: float | None, optimizer: Optimizer | None) -> list[Change]:
    params, names = model.flat_params(), model.blueprint.param_names
    if optimizer is not None:
        steps = grads.steps if isinstance(grads, Grads) else [grads[n] for n in names]
        return optimizer.step_changes(model, params, steps, lr)
    assert lr is not None
    parts = grads.parts if isinstance(grads, Grads) else [grads[n] for n in names]
    return descent(params, parts, lr)


def _step_of_torch(
    fitting: Iterable[tuple[Model, Any]], lr: float | None, optimizer: torch.optim.Optimizer
) -> None:
    """Take one step of an optimiser of torch, which reads `.grad`; Ctrl-C waits until it has ended.

    Afterwards `.grad` is what it was: left there, a gradient would count again in the next step of
    an optimiser that has the parameters of several models.
    """
    if lr is not None:
        way = "leave `lr` out, or set it in `optimizer.param_groups`"
        raise RunError(NotAModel("an update takes `lr` or an optimiser of torch", "both", way))
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    for model, grads in fitting:
        params, names = model.flat_params(), model.blueprint.param_names
        if not any(id(p) in known for p in params):
            what = "an update takes an optimiser of the model's parameters"
            way = "make it of `model.parameters()`"
            raise RunError(NotAModel(what, "one of others", way))
        found = tensors(grads.tree) if isinstance(grads, Grads) else [grads[n] for n in names]
        pairs += zip(params, found, strict=True)
    uninterrupted(_take_step, pairs, optimizer)


def _take_step(
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], optimizer: torch.optim.Optimizer
) -> None:
    before = [(p, p.grad) for p, _ in pairs]
    try:
        for parameter, gradient in pairs:
            parameter.grad = gradient if parameter.requires_grad else None
        optimizer.step()
    finally:
        for parameter, gradient in before:
            parameter.grad = gradient
