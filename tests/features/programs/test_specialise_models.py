"""Functions of models with some of their arguments fixed: the models stay arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import (
    CheckError,
    Dim,
    Float,
    Fn,
    Int,
    Model,
    RunError,
    Tensor,
    options,
    relay,
    relay_model,
)

N = Dim("N")
ROWS = Tensor[Float, (N, 3)]


@relay_model
def net(x: ROWS, *, depth: int = 2) -> Tensor[Float, (N, 1)]:
    for _ in relay.layers(depth):
        x = relay.tanh(relay.linear(x, out_features=3))
    return relay.linear(x, out_features=1)


@relay
def loss(x: ROWS, y: Tensor[Float, (N, 1)], power: Int, scale: Float) -> Float:
    e = (net(x) - y) * scale
    p = e
    for _ in range(power - 1):
        p = p * e
    return p.mean()


@relay
def twice(x: ROWS) -> ROWS:
    return 2.0 * x


@relay
def applied(x: ROWS, f: Fn[[ROWS], ROWS], model: Model[net], n: Int) -> Float:
    for _ in range(n):
        x = f(x)
    return model(x).sum()


@relay
def trained(model: Model[net], x: ROWS, y: Tensor[Float, (N, 1)], n: Int, lr: Float) -> Float:
    total = 0.0
    for _ in range(n):
        value, grads = relay.value_and_grad(model, loss, (x, y, 2, 1.0))
        relay.update_model_params(model, grads, lr=lr)
        total += value
    return total


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X, Y = random(4, 3), random(4, 1, seed=1)


def test_what_the_fixed_values_decide_is_gone() -> None:
    text = str(relay.specialise(loss, power=3, scale=2.0))
    assert text.count("def @") == 1
    assert "power" not in text
    assert "if" not in text


@relay
def shifted(x: ROWS, b: Float) -> Float:
    return (net(x) + b).sum()


def test_zeros_are_left_out_of_functions_of_models_under_fast_math() -> None:
    model: Model = relay.create_model(net, seed=0)
    exact, fast = (relay.specialise(shifted, b=0.0, fast_math=f) for f in (False, True))
    assert "0.0" in str(exact)
    assert "0.0" not in str(fast)
    torch.testing.assert_close(model.bind(fast)(X), model.bind(exact)(X))


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(dict(found), dict(expected))


@pytest.mark.parametrize("lowering", ["torch", "c"])
def test_a_specialised_loss_is_used_as_the_loss(lowering: str) -> None:
    model: Model = relay.create_model(net, seed=0)
    left, given = relay.specialise(loss, power=2, scale=3.0), (X, Y, 2, 3.0)
    with options(lowering=lowering):
        value = model.bind(loss)(*given)
        gradient = relay.grad(model, loss, given)
        torch.testing.assert_close(model.bind(left)(X, Y), value)
        torch.testing.assert_close(relay.with_params(left)(model.params, X, Y), value)
        found, by = relay.value_and_grad(model, left, (X, Y))
        torch.testing.assert_close(found, value)
        close(by, gradient)
        close(relay.grad(model, left, (X, Y)), gradient)
        product = relay.hvp(model, loss, given, gradient)
        close(relay.hvp(model, left, (X, Y), gradient), product)
    model.bind(left)(X, Y).backward()
    close({n: p.grad for n, p in model.named_parameters()}, gradient)


def test_models_are_passed_and_functions_fixed() -> None:
    model: Model = relay.create_model(net, seed=0)
    left = relay.specialise(applied, f=twice, n=2)
    expected = applied(X, twice, model, 2)
    torch.testing.assert_close(left(X, model), expected)
    torch.testing.assert_close(left(model=model, x=X), expected)
    torch.testing.assert_close(left.interpret(X, model), expected)
    gradient = relay.grad(model, applied, (X, twice, model, 2))
    close(relay.grad(model, left, (X, model)), gradient)
    other: Model = relay.create_model(net, seed=0, depth=3)  # another program
    torch.testing.assert_close(left(X, other), applied(X, twice, other, 2))


def test_a_transform_is_specialised_after_it() -> None:
    model: Model = relay.create_model(net, seed=0)
    gradient = relay.grad(applied, wrt="x")
    left = relay.specialise(gradient, f=twice, n=2)
    torch.testing.assert_close(left(X, model), gradient(X, twice, model, 2))
    with pytest.raises(CheckError, match="has no parameter `n`"):
        relay.specialise(relay.jvp(applied, wrt="x"), n=2)


def test_a_specialised_training_loop_updates_the_model() -> None:
    model, other = (relay.create_model(net, seed=1) for _ in range(2))
    left = relay.specialise(trained, n=3, lr=0.1)
    torch.testing.assert_close(left(model, X, Y), trained(other, X, Y, 3, 0.1))
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])


def test_large_tensors_stay_arguments_that_the_function_passes() -> None:
    model: Model = relay.create_model(net, seed=0)
    x, y = random(400, 3), random(400, 1)
    left = relay.specialise(loss, x=x, power=2, scale=1.0)
    expected = model.bind(loss)(x, y, 2, 1.0)
    for _ in range(2):  # the second call is direct
        torch.testing.assert_close(model.bind(left)(y), expected)
    torch.testing.assert_close(model.bind(left)(y=y), expected)
    gradient = relay.grad(model, loss, (x, y, 2, 1.0))
    close(relay.grad(model, left, (y,)), gradient)


@relay_model
def dropped(x: ROWS) -> ROWS:
    return relay.dropout(relay.linear(x, out_features=3), p=0.5)


@relay
def summed(x: ROWS, k: Int) -> Float:
    total = 0.0
    for _ in range(k):
        total += dropped(x).sum()
    return total


def test_the_mode_of_the_model_counts() -> None:
    model, other = (relay.create_model(dropped, seed=0) for _ in range(2))
    left = relay.specialise(summed, k=2)
    for training in (True, False):
        model.train(training)
        other.train(training)
        torch.testing.assert_close(model.bind(left)(X), other.bind(summed)(X, 2))


def test_what_does_not_fit_is_refused() -> None:
    left = relay.specialise(applied, f=twice, n=2)
    with pytest.raises(RunError, match="missing a required argument: 'model'"):
        left(X)
    with pytest.raises(RunError, match="got no model"):
        relay.specialise(loss, power=2, scale=3.0)(X, Y)
    with pytest.raises(CheckError, match="is a model; specialise a function that calls it"):
        relay.specialise(net, x=X)
