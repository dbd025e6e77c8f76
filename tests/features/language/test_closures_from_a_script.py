"""Gradients of functions that are passed a closure which relay returned to the script."""

from __future__ import annotations

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Ref, Tensor, relay, relay_model

N, M = Dim("N"), Dim("M")
temperature = relay.implicit("temperature", Float)


@relay
def scaled(w: Tensor[Float, (N,)]) -> Fn[[Tensor[Float, (N,)]], Float]:
    return lambda x: (w * relay.tanh(x)).sum()


@relay
def use(f: Fn[[Tensor[Float, (N,)]], Float], x: Tensor[Float, (N,)]) -> Float:
    return f(x) * f(x + 1.0)


def plain_use(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (w * torch.tanh(x)).sum() * (w * torch.tanh(x + 1.0)).sum()


W, X = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.1, 0.2, -0.3])


def slope(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    plain_use(w, x).backward()
    assert x.grad is not None
    return x.grad


def test_the_gradient_is_in_the_arguments_beside_the_closure() -> None:
    f = scaled(W)
    assert torch.allclose(use(f, X), plain_use(W, X))
    assert torch.allclose(relay.grad(use)(f, X), slope(W, X))
    assert torch.allclose(relay.grad(use, wrt="x")(f, X), slope(W, X))
    value, gradient = relay.value_and_grad(use)(f, X)
    assert torch.allclose(value, plain_use(W, X))
    assert torch.allclose(gradient, slope(W, X))
    value, pullback = relay.vjp(use, wrt="x")(f, X)
    assert torch.allclose(pullback(torch.tensor(2.0)), 2.0 * slope(W, X))


def test_a_program_serves_all_closures_of_a_maker() -> None:
    gradient = relay.grad(use)
    for w in (W, 2.0 * W, W.flip(0)):
        assert torch.allclose(gradient(scaled(w), X), slope(w, X))
    long = torch.linspace(-1.0, 1.0, 7)
    assert torch.allclose(gradient(scaled(long), long), slope(long, long))
    before = gradient.cache_info().misses
    gradient(scaled(W * 3.0), X)
    assert gradient.cache_info().misses == before


@relay
def power(*, degree: int) -> Fn[[Float], Float]:
    return lambda x: x**degree


@relay
def after(f: Fn[[Float], Float], g: Fn[[Float], Float], a: Float) -> Fn[[Float], Float]:
    return lambda x: f(g(x)) * a


@relay
def at(f: Fn[[Float], Float], x: Float) -> Float:
    return f(x)


def test_a_closure_of_closures_is_made_again_whole() -> None:
    f = after(power(degree=2), after(power(degree=3), power(degree=1), 2.0), 3.0)
    assert torch.allclose(at(f, 1.5), torch.tensor(12.0 * 1.5**6))
    assert torch.allclose(relay.grad(at)(f, 1.5), torch.tensor(72.0 * 1.5**5))


@relay
def heated(a: Float) -> Fn[[Float], Float]:
    return lambda x: a * x / temperature


def test_a_closure_keeps_the_implicit_values_of_its_call() -> None:
    assert relay.grad(at)(heated(6.0, temperature=2.0), 1.0) == 3.0


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def penalty(a: Float) -> Fn[[Tensor[Float, (N, 2)]], Float]:
    return lambda y: a * (y**2).sum()


@relay
def loss(f: Fn[[Tensor[Float, (N, 2)]], Float], x: Tensor[Float, (N, 3)]) -> Float:
    return f(net(x))


def test_a_loss_of_a_model_may_be_passed_one() -> None:
    model, x = relay.create_model(net, seed=0), torch.ones(4, 3)
    grads = relay.grad(model, loss, (penalty(0.5), x))
    (0.5 * (model(x) ** 2).sum()).backward()
    assert torch.allclose(grads["linear_1.weight"], model.linear_1.weight.grad)


@relay
def counting(a: Float) -> Fn[[Float], Float]:
    count: Ref[Float] = relay.ref(0.0)

    def step(x):
        count.value += 1.0
        return a * x * count.value

    return step


def test_a_closure_with_a_state_is_not_made_again() -> None:
    with pytest.raises(CheckError, match="the function to differentiate is not known here"):
        relay.grad(at)(counting(2.0), 1.0)
