"""Derivatives and training under implementations of operators."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Tensor, dispatch, relay, relay_model
from tests.features.dispatch.dispatching import Counting, Seen, X, area
from tests.tolerances import assert_program

N = Dim("N")


def test_the_derivative_stays_that_of_the_operator() -> None:
    @relay
    def f(x: Tensor[Float, (N,)]) -> Float:
        return relay.sum(relay.exp(x))

    x = torch.tensor([0.5, 1.0])
    with dispatch.register(relay.exp, "cpu", lambda x: x * 0 + 2):
        value, gradient = relay.value_and_grad(f)(x)
    assert float(value) == 4.0
    # exp's rule is g * out, and out is what the implementation gave.
    torch.testing.assert_close(gradient, torch.tensor([2.0, 2.0]))


@relay
def pooled(x: Tensor[Float, (N, 1, 4, 4)]) -> Float:
    return relay.sum(relay.max_pool2d(x, kernel_size=2) * 3.0)


@relay
def normed(x: Tensor[Float, (N, 1, 4, 4)]) -> Float:
    weight = relay.linspace(1.0, 2.0, 4)
    return relay.sum(relay.layer_norm(x, (4,), weight, weight) ** 3)


@pytest.mark.parametrize("f", [pooled, normed], ids=["max_pool2d", "layer_norm"])
def test_an_operator_whose_derivative_keeps_more_still_has_its_implementation(f: Any) -> None:
    name = "max_pool2d" if f is pooled else "layer_norm"
    seen: list[str] = []

    def noted(call: dispatch.OperatorCall) -> Any:
        seen.append(call.name)
        return call.redispatch() + 1.0

    x = torch.randn(2, 1, 4, 4, dtype=torch.float32)
    plain_value, plain_gradient = relay.value_and_grad(f)(x)
    with dispatch.register(name, "cpu", noted, boxed=True):
        value, gradient = relay.value_and_grad(f)(x)
        assert seen == [name]
        torch.testing.assert_close(f(x), value)
    assert abs(float(value - plain_value)) > 1.0
    if f is pooled:
        torch.testing.assert_close(gradient, plain_gradient)
    seen.clear()
    with dispatch.fallback("cpu", lambda call: (seen.append(call.name), call.redispatch())[1]):
        value, gradient = relay.value_and_grad(f)(x)
    assert_program((value, gradient), (plain_value, plain_gradient))
    assert name not in seen  # a fallback sees the operator that keeps more, in its place


def test_second_derivatives_run_the_implementation_of_the_function() -> None:
    @relay
    def f(x: Tensor[Float, (1, 1, 4, 4)]) -> Float:
        return relay.sum(relay.max_pool2d(x * x, kernel_size=2) ** 2)

    @relay
    def slope(x: Tensor[Float, (1, 1, 4, 4)]) -> Float:
        return relay.sum(relay.grad(f)(x))

    x = torch.randn(1, 1, 4, 4)
    expected = relay.grad(slope)(x)
    with dispatch.register(relay.max_pool2d, (), lambda *_, **__: dispatch.redispatch()):
        torch.testing.assert_close(relay.grad(slope)(x), expected)


def test_torch_sees_the_same_derivative_and_runs_the_backward_where_the_forward_ran() -> None:
    seen = Seen()
    x = X[:, :2].clone().requires_grad_()
    with dispatch.fallback(Counting, seen):
        with dispatch.include(Counting):
            value = area(x)
        before = len(seen.names)
        backward = threading.Thread(target=value.backward)
        backward.start()
        backward.join()
    assert before >= 3
    assert len(seen.names) > before
    assert x.grad is not None
    expected = x.detach().clone().requires_grad_()
    torch.tanh(expected @ expected.T).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=8)), out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(net(x), y)


@relay
def train(model: Model[net], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x, y))
    relay.update_model_params(model, grads, lr=0.1)
    return value


def test_training_under_a_fallback_gives_the_parameters_of_training_without() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
    plain, watched = relay.create_model(net, seed=1), relay.create_model(net, seed=1)
    seen = Seen()
    for _ in range(3):
        expected = train(plain, x, y)
        with dispatch.fallback(Counting, seen), dispatch.include(Counting):
            torch.testing.assert_close(train(watched, x, y), expected)
    for a, b in zip(plain.parameters(), watched.parameters(), strict=True):
        torch.testing.assert_close(b, a)
    assert seen.names.count("linear") == 6
