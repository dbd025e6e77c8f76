"""Checks of the arguments of functions over models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias, cast

import torch

from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.catalogue.model import NotAModel
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...diagnostics.wording import counted
from ...ir.expr import Rule
from ..models.bound import place_of
from ..models.model import Model
from ..models.optim import Optimizer
from ..models.records import Grads, TensorRecord
from ..values.structure import tensors
from ..values.text import describe
from .function import RelayModel

Wrt: TypeAlias = str | tuple[str, ...] | None
"""The names of the parameters to differentiate in."""

Gradients: TypeAlias = TensorRecord | Mapping[str, torch.Tensor]


def expect_model(value: Any, function: str) -> None:
    """Stop unless a value is a model. Raises RunError."""
    if isinstance(value, Model):
        return
    way = "make one: model = relay.create_model(net)"
    actual = describe(value)
    if isinstance(value, RelayModel):
        actual = f"the definition `{value.__name__}`"
        way = f"make an instance: model = relay.create_model({value.__name__})"
    elif isinstance(value, Grads):
        way = "the model comes first: relay.update_model_params(model, grads, lr=0.05)"
    raise RunError(NotAModel(f"{function} takes a model", actual, way, place_of(value)))


def are_names(wrt: Any) -> bool:
    """Return whether a value is a name, or a tuple of names."""
    return all(isinstance(n, str) for n in (wrt if isinstance(wrt, tuple) else (wrt,)))


def names_of(rule: Rule, rest: tuple[Any, ...], wrt: Wrt) -> Wrt:
    """Return the names to differentiate in, which may stand without `wrt=`. Raises RunError."""
    names = (*rest, wrt) if wrt is not None else rest
    if any(isinstance(n, Model) for n in names):
        why = "takes the model first, and then the function that gives the loss"
        way = f"relay.{rule.value}(model, loss, (x, y))"
        raise RunError(WrongCall(f"relay.{rule.value}", NOWHERE, why, way))
    if len(names) > 1 or not all(map(are_names, names)):
        found = ", ".join(map(describe, names))
        why = f"`wrt` is one name of a parameter, or a tuple of names, not {found}"
        way = f"name the parameters: relay.{rule.value}(f, wrt='x'), or wrt=('x', 'y')"
        raise RunError(WrongCall(f"relay.{rule.value}", NOWHERE, why, way))
    return names[0] if names else None


def expect_gradients(value: Any) -> None:
    """Stop unless a value is the gradient in a model's parameters. Raises RunError."""
    if not isinstance(value, Grads | Mapping):
        what = "relay.update_model_params takes the gradient in the model's parameters"
        way = "the second of `value, grads = relay.value_and_grad(model, loss, (x, y))`"
        raise RunError(NotAModel(what, describe(value), f"{way}, or relay.grad(...)"))


def gradients_of(
    model: Model, tree: tuple[object, ...], taker: str = "relay.update_model_params"
) -> dict[str, torch.Tensor]:
    """Return the gradient that a program returns, as nested tuples, by the names of the parameters.
    Raises RunError for other tuples."""
    found, names = tensors(tree), model.blueprint.param_names
    if len(found) != len(names):
        what = f"{taker} takes the gradient in the model's parameters"
        actual = f"{counted(len(found), 'tensor')} for {counted(len(names), 'parameter')}"
        raise RunError(NotAModel(what, actual, "write relay.grad(model, loss, (x, y))"))
    return dict(zip(names, found, strict=True))


def directions_of(models: Sequence[Model], given: Any, function: str) -> list[Any]:
    """Return directions of the parameters of each model as the nested tuples of its program, from
    one for each model: a mapping like gradients, or such a tuple. Raises RunError."""
    return [_direction(m, v, function) for m, v in zip(models, given, strict=True)]


def _direction(model: Model, value: Any, function: str) -> Any:
    if isinstance(value, tuple):
        value = gradients_of(model, cast("tuple[object, ...]", value), function)
    if not isinstance(value, Mapping):
        what = f"{function} takes a direction like the gradient: a tensor for each parameter"
        way = f"{function}(model, loss, (x, y), v), with v such as relay.grad(model, loss, (x, y))"
        raise RunError(NotAModel(what, describe(value), way))
    named = cast("Gradients", value)
    expect_fitting(model, named, "direction")
    for name, param in zip(model.blueprint.param_names, model.flat_params(), strict=True):
        _expect_kind(name, param, named[name], "direction")  # of a record, too
    return model.blueprint.params_tree([named[n] for n in model.blueprint.param_names])


def expect_fitting(model: Model, grads: Gradients, kind: str = "gradient") -> None:
    """Stop unless a gradient has a tensor like each parameter of a model. Raises RunError."""
    if isinstance(grads, TensorRecord) and grads.home.blueprint is model.blueprint:
        return
    what = f"a {kind} has an entry like each parameter of the model"
    for name, param in zip(model.blueprint.param_names, model.flat_params(), strict=True):
        if name not in grads:
            raise RunError(NotAModel(what, f"none for `{name}`", "write zeros for it"))
        there, own = tuple(grads[name].shape), tuple(param.shape)
        if there != own:
            actual = f"one of shape {there} for `{name}` of shape {own}"
            way = f"write one in the parameters of `{model.blueprint.name}`"
            raise RunError(NotAModel(what, actual, way))
        _expect_kind(name, param, grads[name], kind)


def _expect_kind(name: str, param: torch.Tensor, given: torch.Tensor, kind: str) -> None:
    """Stop unless a tensor has the dtype and the device of a parameter. Raises RunError."""
    if (given.dtype, given.device) != (param.dtype, param.device):
        what = f"a {kind} has the dtype and the device of the parameter `{name}`"
        actual = f"{given.dtype} on {given.device} for {param.dtype} on {param.device}"
        raise RunError(NotAModel(what, actual, "convert it: v.to(param)"))


def expect_rate(value: Any) -> None:
    """Stop unless a value is a learning rate. Raises RunError."""
    is_tensor = isinstance(value, torch.Tensor) and value.dim() == 0
    if not is_tensor and (isinstance(value, bool) or not isinstance(value, float | int)):
        raise RunError(NotAModel("`lr` is a number", describe(value), "write lr=0.05"))


def expect_optimizer(value: Any) -> None:
    """Stop unless a value is an optimiser. Raises RunError."""
    if isinstance(value, Optimizer | torch.optim.Optimizer):
        return
    is_class = isinstance(value, type) and issubclass(value, torch.optim.Optimizer)
    actual = f"the class {value.__name__}" if is_class else describe(value)
    made = f"torch.optim.{value.__name__}" if is_class else "torch.optim.Adam"
    way = f"make one before the loop: opt = {made}(model.parameters(), lr=0.01)"
    raise RunError(NotAModel("an update takes an optimiser", actual, way))


def expect_seed(value: Any) -> None:
    """Stop unless a value is a seed. Raises RunError."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise RunError(NotAModel("`seed` is a whole number", describe(value), "write seed=0"))


def expect_sizes(value: Any) -> None:
    """Stop unless a value maps names to open sizes. Raises RunError."""
    way = "write dims={K: 784}"
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise RunError(NotAModel("`dims` gives sizes by their names", describe(value), way))
    sizes: Mapping[Any, Any] = value
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, SupportsIndex):
            raise RunError(NotAModel(f"the size `{name}` is a whole number", describe(size), way))
