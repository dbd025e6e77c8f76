"""MAML on sine waves: a loss behind inner steps of descent, differentiated as a whole."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Params, Tensor, relay, relay_model

N, K, B = Dim("N"), Dim("K"), Dim("B")
INNER_LR = 0.05


@relay_model
def network(x: Tensor[Float, (N, 1)]) -> Tensor[Float, (N, 1)]:
    h = relay.tanh(relay.linear(x, out_features=16))
    return relay.linear(h, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> Float:
    return ((network(x) - y) ** 2).mean()


@relay
def adapted_loss(
    params: Params[network],
    x: Tensor[Float, (N, 1)],
    y: Tensor[Float, (N, 1)],
    x_test: Tensor[Float, (K, 1)],
    y_test: Tensor[Float, (K, 1)],
) -> Float:
    pure = relay.with_params(loss)
    for _ in range(2):
        grads = relay.grad(pure)(params, x, y)
        params = relay.sgd(params, grads, INNER_LR)
    return pure(params, x_test, y_test)


@relay
def meta_loss(
    params: Params[network],
    xs: Tensor[Float, (B, N, 1)],
    ys: Tensor[Float, (B, N, 1)],
    xs_test: Tensor[Float, (B, K, 1)],
    ys_test: Tensor[Float, (B, K, 1)],
) -> Float:
    total = 0
    for x, y, x_test, y_test in zip(xs, ys, xs_test, ys_test):
        total += adapted_loss(params, x, y, x_test, y_test)
    return total / len(xs)


def tasks(seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    phases = torch.rand(4, 1, 1, generator=generator)
    amplitudes = 0.5 + torch.rand(4, 1, 1, generator=generator)

    def points(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = 4 * torch.rand(4, n, 1, generator=generator) - 2
        return x, amplitudes * torch.sin(x + phases)

    return *points(5), *points(8)


def reference(params: list[torch.Tensor], batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    def task_loss(weights: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        w1, b1, w2, b2 = weights
        return (torch.tanh(x @ w1.T + b1) @ w2.T + b2 - y).square().mean()

    losses: list[torch.Tensor] = []
    for x, y, x_test, y_test in zip(*batch, strict=True):
        weights = params
        for _ in range(2):
            grads = torch.autograd.grad(task_loss(weights, x, y), weights, create_graph=True)
            weights = [w - INNER_LR * g for w, g in zip(weights, grads, strict=True)]
        losses.append(task_loss(weights, x_test, y_test))
    return torch.stack(losses).mean()


def test_the_meta_gradient_is_that_of_torch() -> None:
    model = relay.create_model(network, seed=0)
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    value, grads = relay.value_and_grad(meta_loss, wrt="params")(model.params, *tasks(0))
    expected = reference(weights, tasks(0))
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    for ours, weight in zip(grads.values(), weights, strict=True):
        torch.testing.assert_close(ours, weight.grad)


def test_meta_training_follows_torch_and_helps_new_tasks() -> None:
    model = relay.create_model(network, seed=0)
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    adam, torch_adam = relay.optim.adam(lr=0.01), torch.optim.Adam(weights, lr=0.01)
    before = meta_loss(model.params, *tasks(1000))
    for i in range(30):
        value, grads = relay.value_and_grad(meta_loss, wrt="params")(model.params, *tasks(i))
        relay.update_model_params(model, grads, optimizer=adam)
        torch_adam.zero_grad()
        expected = reference(weights, tasks(i))
        expected.backward()
        torch_adam.step()
        torch.testing.assert_close(value, expected.detach(), rtol=1e-3, atol=1e-4)
    assert meta_loss(model.params, *tasks(1000)) < before
