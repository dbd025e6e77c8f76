"""`Params[net]`: records of parameters as arguments and results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, Params, RunError, Tensor, relay, relay_model

N = Dim("N")
X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


@relay_model
def net(x: Tensor[Float, (N, 3)], *, width: int = 4) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=width)), out_features=2)


@relay_model
def other(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return (net(x) ** 2).mean()


@relay
def adapted(params: Params[net], x: Tensor[Float, (N, 3)]) -> Params[net]:
    pure = relay.with_params(loss)
    return relay.sgd(params, relay.grad(pure)(params, x), 0.1)


@relay
def outer(params: Params[net], x: Tensor[Float, (N, 3)]) -> Float:
    return relay.with_params(loss)(adapted(params, x), x)


def expected(model: Any) -> torch.Tensor:
    """Return the loss after an inner step, made by the script."""
    pure = relay.with_params(loss)
    return pure(relay.sgd(model.params, relay.grad(pure)(model.params, X), 0.1), X).detach()


def test_a_function_takes_and_gives_parameters() -> None:
    model = relay.create_model(net, seed=1)
    moved = adapted(model.params, X)
    assert sorted(moved) == sorted(model.params)
    pure = relay.with_params(loss)
    torch.testing.assert_close(pure(moved, X), expected(model))
    torch.testing.assert_close(outer(model.params, X).detach(), expected(model))


def test_a_program_passes_its_models_parameters() -> None:
    @relay
    def meta(model: Model[net], x: Tensor[Float, (N, 3)]):
        value, grads = relay.value_and_grad(outer, wrt="params")(model.params, x)
        return value, grads

    model = relay.create_model(net, seed=1)
    value, grads = meta(model, X)
    torch.testing.assert_close(value, expected(model))
    before = outer(model.params, X).detach()
    relay.update_model_params(model, grads, lr=0.1)
    assert outer(model.params, X) < before


def test_the_gradient_in_parameters_updates_the_model() -> None:
    model = relay.create_model(net, seed=1)
    before = outer(model.params, X).detach()
    grads = relay.grad(outer, wrt="params")(model.params, X)
    relay.update_model_params(model, grads, optimizer=relay.optim.sgd(0.1))
    assert outer(model.params, X) < before


def test_static_arguments_of_the_model_come_with_its_parameters() -> None:
    @relay
    def size(params: Params[net]) -> Float:
        return params.norm()

    wide = relay.create_model(net, seed=1, width=9)
    torch.testing.assert_close(size(wide.params).detach(), wide.params.norm())


def test_other_values_are_refused_by_name() -> None:
    model, wrong = relay.create_model(net), relay.create_model(other)
    with pytest.raises(RunError, match=r"Params\[net\]"):
        outer(wrong.params, X)
    with pytest.raises(RunError, match=r"model\.params"):
        outer(model, X)
    with pytest.raises(RunError, match="2 tensors for 4 parameters"):
        relay.update_model_params(model, (X, X), lr=0.1)
