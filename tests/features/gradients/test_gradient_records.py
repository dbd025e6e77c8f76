"""Gradients of models: products are made when they are looked at, updates do without."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.config import options

N = Dim("N")


@relay_model
def layer(x: Tensor[Float, (N, 6)]) -> Tensor[Float, (N, 5)]:
    return relay.linear(relay.tanh(x), out_features=5)


@relay_model
def network(x: Tensor[Float, (N, 6)]) -> Tensor[Float, (N, 3)]:
    h = relay.tanh(layer(x))
    return relay.linear(h, out_features=3)


@relay
def loss(x: Tensor[Float, (N, 6)]) -> Float:
    return (network(x) ** 2).mean()


@relay
def number(x: Tensor[Float, (N, 6)]) -> float:
    return (network(x) ** 2).mean()


def made() -> tuple[Any, torch.Tensor]:
    """Return a model and its input."""
    torch.manual_seed(0)
    return relay.create_model(network, seed=1), torch.randn(4, 6)


def expected(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gradient that torch finds."""
    w = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    names = list(w)
    h = torch.tanh(torch.tanh(x) @ w[names[0]].T + w[names[1]])
    ((h @ w[names[2]].T + w[names[3]]) ** 2).mean().backward()
    return {n: t.grad for n, t in w.items() if t.grad is not None}


def assert_is(grads: Any, wanted: dict[str, torch.Tensor]) -> None:
    assert list(grads) == list(wanted)
    for name, tensor in grads.items():
        torch.testing.assert_close(tensor, wanted[name])


def test_gradients_of_weights_are_pairs_until_they_are_looked_at() -> None:
    model, x = made()
    with options(lowering="torch"):
        _, grads = relay.value_and_grad(model, loss, (x,))
    assert [isinstance(part, tuple) for part in grads.parts] == [True, False, True, False]
    assert_is(grads, expected(model, x))
    assert all(isinstance(part, torch.Tensor) for part in grads.parts)
    assert grads["linear_1.weight"] is grads["linear_1.weight"]


@pytest.mark.parametrize(
    "look",
    [
        lambda grads: grads,
        lambda grads: (grads.norm(), grads)[1],
        lambda grads: grads * 1,
        lambda grads: {**grads},
        copy.copy,
        copy.deepcopy,
        lambda grads: relay.tree_map(torch.clone, grads),
    ],
    ids=["not at all", "norm", "arithmetic", "mapping", "copy", "deep copy", "map"],
)
def test_an_update_is_the_same_however_the_gradient_was_looked_at(
    look: Callable[[Any], Any],
) -> None:
    model, x = made()
    wanted = {n: p.detach().clone() for n, p in model.named_parameters()}
    for name, gradient in expected(model, x).items():
        wanted[name] -= 0.5 * gradient
    _, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, look(grads), lr=0.5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), wanted[name])


def test_what_a_script_writes_to_a_gradient_counts() -> None:
    model, x = made()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    _, grads = relay.value_and_grad(model, loss, (x,))
    for gradient in grads.values():
        gradient.zero_()
    relay.update_model_params(model, grads, lr=0.5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name], rtol=0, atol=0)


def test_a_gradient_outlives_the_parameters_and_the_input_that_it_was_taken_at() -> None:
    model, x = made()
    wanted = expected(model, x)
    _, grads = relay.value_and_grad(model, loss, (x,))
    with torch.no_grad():
        x.zero_()
        for parameter in model.parameters():
            parameter.zero_()
    assert_is(grads, wanted)


@pytest.mark.parametrize("optimizer", ["relay", "torch"])
def test_optimisers_take_the_gradients_whole(optimizer: str) -> None:
    model, x = made()
    wanted = {n: p.detach().clone() for n, p in model.named_parameters()}
    for name, gradient in expected(model, x).items():
        wanted[name] -= 0.1 * gradient
    own, torchs = relay.optim.sgd(lr=0.1), torch.optim.SGD(model.parameters(), lr=0.1)
    _, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=own if optimizer == "relay" else torchs)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), wanted[name])


def test_bare_gradients_and_those_of_numbers_are_the_same() -> None:
    model, x = made()
    wanted = expected(model, x)
    assert_is(relay.grad(model, loss, (x,)), wanted)
    assert_is(relay.grad(model, number, (x,)), wanted)
    value, grads = relay.value_and_grad(model, number, (x,))
    assert isinstance(value, float)
    assert_is(grads, wanted)


def test_gradients_of_two_models_are_the_same() -> None:
    first, x = made()
    second = relay.create_model(layer, seed=2)

    @relay
    def both(x: Tensor[Float, (N, 6)]) -> Float:
        return (network(x) ** 2).mean() + layer(x).sum()

    _, (mine, other) = relay.value_and_grad((first, second), both, (x,))
    assert_is(mine, expected(first, x))
    torch.testing.assert_close(other["linear_1.weight"], torch.tanh(x).sum(0).expand(5, 6))
