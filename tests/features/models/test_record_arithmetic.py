"""Arithmetic on the gradients and parameters of a model: in a program as in a script."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")
Inputs = Tensor[Float, (N, 3)]
Targets = Tensor[Float, (N, 2)]


@relay_model
def inner(x: Inputs):
    return relay.tanh(relay.linear(x, out_features=4))


@relay_model
def net(x: Inputs):
    return relay.linear(inner(x), out_features=2)


@relay
def loss(x: Inputs, y: Targets):
    return relay.mse_loss(net(x), y)


X, Y = torch.linspace(-1.0, 1.0, 15).reshape(5, 3), torch.linspace(1.0, -1.0, 10).reshape(5, 2)


@relay
def scaled(model: Model[net], x: Inputs, y: Targets):
    g = relay.grad(model, loss, (x, y))
    relay.update_model_params(model, 0.5 * g, lr=0.1)


@relay
def mixed(model: Model[net], x: Inputs, y: Targets):
    g = relay.grad(model, loss, (x, y))
    h = relay.grad(model, loss, (2.0 * x, y))
    relay.update_model_params(model, (g + h) / 2 - -g * 3.0 + 1e-3 * model.params, lr=0.1)


@relay
def turned(model: Model[net], x: Inputs, y: Targets):
    g = relay.grad(model, loss, (x, y))
    relay.update_model_params(model, (1.0 - g) * (2.0 + g) * (1.0 / (g * g + 1.0)), lr=0.1)


@relay
def clipped(model: Model[net], x: Inputs, y: Targets):
    g = relay.grad(model, loss, (x, y))
    size = g.norm()
    if size > 0.1:
        g = g * (0.1 / size)
    relay.update_model_params(model, g, lr=1.0)


@relay
def with_momentum(model: Model[net], x: Inputs, y: Targets):
    velocity = 0.0 * model.params
    for _ in range(4):
        velocity = 0.9 * velocity + relay.grad(model, loss, (x, y))
        relay.update_model_params(model, velocity, lr=0.1)


@relay
def accumulated(model: Model[net], x: Inputs, y: Targets):
    total = relay.grad(model, loss, (x, y))
    for i in range(3):
        total += (i + 1.0) * relay.grad(model, loss, (x, y))
    total *= 0.25
    relay.update_model_params(model, total, lr=0.1)


@pytest.mark.parametrize(
    "program",
    [scaled, mixed, turned, clipped, with_momentum, accumulated],
    ids=lambda f: f.__name__,
)
def test_a_program_computes_with_records_as_a_script_does(program: Any) -> None:
    ours, theirs = relay.create_model(net, seed=3), relay.create_model(net, seed=3)
    program(ours, X, Y)
    program.__wrapped__(theirs, X, Y)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor)


@relay
def renamed(model: Model[net], x: Inputs, y: Targets, n: int):
    chosen = model
    for _ in range(n):
        relay.update_model_params(chosen, relay.grad(chosen, loss, (x, y)), lr=0.1)
        chosen = model
    return chosen(x)


def test_a_name_for_a_model_may_be_given_anew_in_a_loop() -> None:
    model = relay.create_model(net, seed=3)
    found = renamed(model, X, Y, 2)
    torch.testing.assert_close(found, model(X).detach())


@relay
def long_sum(x: Float) -> Float:
    return x + x * x - x / 2.0 + x


def test_arithmetic_on_numbers_is_what_it_was() -> None:
    assert long_sum(2.0) == 7.0


@relay
def averaged(slow: Model[net], fast: Model[net]) -> Float:
    before = slow.params.norm()
    relay.update_model_params(slow, slow.params - fast.params, lr=0.1)
    return before


def test_parameters_are_values_of_models_that_are_not_called() -> None:
    slow, fast = relay.create_model(net, seed=0), relay.create_model(net, seed=1)
    held = [p.detach().clone() for p in slow.parameters()]
    before = averaged(slow, fast)
    torch.testing.assert_close(before, torch.cat([p.flatten() for p in held]).norm())
    for now, was, other in zip(slow.parameters(), held, fast.parameters(), strict=True):
        torch.testing.assert_close(now, was.lerp(other, 0.1))
