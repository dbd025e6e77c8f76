"""Hessians, jacobians, pullbacks and linear functions in the parameters of a model: mappings by the
names of parameters, as gradients are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N = Dim("N")


@relay_model
def network(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=4)), out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return (network(x) ** 2).mean()


@relay
def pair(x: Tensor[Float, (N, 3)]) -> tuple[Float, Tensor[Float, (N,)]]:
    return network(x).sum(), network(x)[:, 0]


X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
Params = dict[str, torch.Tensor]


@pytest.fixture
def model() -> Model:
    return relay.create_model(network, seed=0)


def params_of(model: Model) -> Params:
    return {name: p.detach() for name, p in model.named_parameters()}


def run(params: Params) -> torch.Tensor:
    w1, b1, w2, b2 = params.values()
    return torch.tanh(X @ w1.T + b1) @ w2.T + b2


def plain(params: Params) -> torch.Tensor:
    return (run(params) ** 2).mean()


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(dict(found), dict(expected), rtol=1e-4, atol=1e-5)


def test_a_hessian_has_a_row_for_each_parameter(model: Model) -> None:
    found = relay.hessian(relay.with_params(loss))(model.params, X)
    expected = torch.func.hessian(plain)(params_of(model))
    assert list(found) == list(expected)
    for name, row in found.items():
        close(row, expected[name])


@pytest.mark.parametrize("mode", [relay.jacfwd, relay.jacrev], ids=["jacfwd", "jacrev"])
def test_a_jacobian_has_a_mapping_for_each_tensor(model: Model, mode: Any) -> None:
    params = params_of(model)
    close(mode(relay.with_params(loss))(model.params, X), torch.func.grad(plain)(params))
    total, first = mode(relay.with_params(pair))(model.params, X)
    close(total, torch.func.grad(lambda p: run(p).sum())(params))
    close(first, torch.func.jacrev(lambda p: run(p)[:, 0])(params))


def test_pullbacks_give_and_linear_functions_take_mappings(model: Model) -> None:
    gradient = torch.func.grad(plain)(params_of(model))
    value, pull = relay.vjp(relay.with_params(loss))(model.params, X)
    torch.testing.assert_close(value, plain(params_of(model)))
    close(pull(torch.tensor(2.0)), {name: 2 * g for name, g in gradient.items()})
    _, slope = relay.linearize(relay.with_params(loss))(model.params, X)
    along = relay.grad(model, loss, (X,))
    torch.testing.assert_close(slope(along), sum((g * g).sum() for g in gradient.values()))
