"""A small model, its training with each optimiser in scripts and in programs, and by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def perceptron(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 3)]:
    h = relay.tanh(relay.linear(x, out_features=8))
    return relay.linear(h, out_features=3)


@relay
def loss(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(perceptron(x), y)


@relay
def train(
    model: Model[perceptron],
    optimizer: Optimizer,
    x: Tensor[Float, (N, 4)],
    y: Tensor[Int, (N,)],
    steps: Int,
) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def evaluate(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    return model.bind(loss)(x, y)


generator = torch.Generator().manual_seed(0)
X = torch.randn(5, 4, generator=generator)
Y = torch.randint(0, 3, (5,), generator=generator)

Make = Callable[..., Any]
OPTIMIZERS: dict[str, tuple[Make, Make]] = {
    "sgd": (lambda: relay.optim.sgd(0.5), lambda p: torch.optim.SGD(p, 0.5)),
    "decay": (
        lambda: relay.optim.sgd(0.5, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, 0.5, weight_decay=0.1),
    ),
    "momentum": (lambda: relay.optim.sgd(0.1, 0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9)),
    "nesterov": (
        lambda: relay.optim.sgd(0.1, 0.9, 0.01, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.01, nesterov=True),
    ),
    "adam": (lambda: relay.optim.adam(0.1), lambda p: torch.optim.Adam(p, 0.1)),
    "adam with decay": (
        lambda: relay.optim.adam(0.1, (0.8, 0.9), 1e-3, 0.1),
        lambda p: torch.optim.Adam(p, 0.1, (0.8, 0.9), 1e-3, 0.1),
    ),
    "adamw": (lambda: relay.optim.adamw(0.1), lambda p: torch.optim.AdamW(p, 0.1)),
}
each_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def new_model() -> Any:
    return relay.create_model(perceptron, seed=0)


def script_steps(model: Any, optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        _, grads = relay.value_and_grad(model, loss, (X, Y))
        relay.update_model_params(model, grads, optimizer=optimizer)


def torch_steps(name: str, steps: int) -> Any:
    """Return a model after steps of torch's own optimiser."""
    model = new_model()
    script_steps(model, OPTIMIZERS[name][1](model.parameters()), steps)
    return model


def assert_same(first: Any, second: Any, tolerance: float = 1e-6) -> None:
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=tolerance), (a - b).abs().max()
