"""Per-example gradients and ensembles: models as functions of their parameters, mapped."""

from __future__ import annotations

from typing import Any

import torch
from torch.func import grad, vmap
from torch.nn import functional

from pyrelay import Dim, Float, Int, Model, Params, Tensor, relay, relay_model

N, M, K = Dim("N"), Dim("M"), Dim("K")


@relay_model
def lenet(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    h = relay.max_pool2d(relay.relu(relay.conv2d(x, out_channels=6, kernel_size=5, padding=2)), 2)
    h = relay.max_pool2d(relay.relu(relay.conv2d(h, out_channels=16, kernel_size=5)), 2)
    h = relay.flatten(h, start_dim=1)
    h = relay.relu(relay.linear(h, out_features=120))
    h = relay.relu(relay.linear(h, out_features=84))
    return relay.linear(h, out_features=10)


@relay
def loss(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def of_each(params: Params[lenet], x: Tensor[Float, (M, 1, 1, 28, 28)], y: Tensor[Int, (M, 1)]):
    gradient = relay.grad(relay.with_params(loss))
    return relay.vmap(gradient, in_axes=(None, 0, 0))(params, x, y)


@relay
def of_scaled(
    params: Params[lenet],
    scales: Tensor[Float, (K,)],
    x: Tensor[Float, (N, 1, 28, 28)],
    y: Tensor[Int, (N,)],
) -> Tensor[Float, (K,)]:
    pure = relay.with_params(loss)

    def scaled(scale: Float) -> Float:
        return pure(relay.tree_map(lambda p: p * scale, params), x, y)

    return relay.vmap(scaled)(scales)


def torch_loss(params: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    w = list(params.values())
    h = functional.max_pool2d(functional.relu(functional.conv2d(x, w[0], w[1], padding=2)), 2)
    h = functional.max_pool2d(functional.relu(functional.conv2d(h, w[2], w[3])), 2)
    h = functional.relu(functional.linear(h.flatten(1), w[4], w[5]))
    h = functional.relu(functional.linear(h, w[6], w[7]))
    return functional.cross_entropy(functional.linear(h, w[8], w[9]), y)


def images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 1, 28, 28, generator=generator)
    return x, torch.randint(0, 10, (count,), generator=generator)


def test_gradients_of_each_example_are_those_of_torch() -> None:
    model = relay.create_model(lenet, seed=0)
    x, y = images(5)
    found = of_each(model.params, x[:, None], y[:, None])
    params = {n: p.detach() for n, p in model.named_parameters()}
    wanted = vmap(grad(torch_loss), in_dims=(None, 0, 0))(params, x[:, None], y[:, None])
    for mine, theirs in zip(found, wanted.values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_an_ensemble_is_one_call() -> None:
    model = relay.create_model(lenet, seed=0)
    x, y = images(3)
    scales = torch.tensor([0.5, 1.0, 2.0])
    params = {n: p.detach() for n, p in model.named_parameters()}
    wanted = [torch_loss({n: p * s for n, p in params.items()}, x, y) for s in scales]
    found = of_scaled(model.params, scales, x, y)
    torch.testing.assert_close(found, torch.stack(wanted), rtol=1e-4, atol=1e-5)


@relay
def of_models(model: Model[lenet], x: Tensor[Float, (M, N, 1, 28, 28)]):
    return relay.vmap(lambda batch: model(batch))(x)


def test_a_model_is_mapped_over_batches() -> None:
    model = relay.create_model(lenet, seed=0)
    x = images(4)[0].reshape(2, 2, 1, 28, 28)
    torch.testing.assert_close(of_models(model, x), torch.stack([model(each) for each in x]))


def test_an_ensemble_of_a_script_is_one_call() -> None:
    models = [relay.create_model(lenet, seed=seed) for seed in range(3)]
    x, y = images(4)
    members = relay.tree_map(lambda *each: torch.stack(each), *(m.params for m in models))
    ensemble = relay.vmap(relay.with_params(lenet), in_axes=(0, None))
    wanted = torch.stack([model(x) for model in models])
    torch.testing.assert_close(ensemble(members, x), wanted, rtol=1e-4, atol=1e-5)
    losses, slopes = relay.vmap(
        relay.value_and_grad(relay.with_params(loss)), in_axes=(0, None, None)
    )(members, x, y)
    for number, model in enumerate(models):
        value, gradient = relay.value_and_grad(model, loss, (x, y))
        torch.testing.assert_close(losses[number], value, rtol=1e-4, atol=1e-5)
        for name, slope in gradient.items():
            torch.testing.assert_close(slopes[name][number], slope, rtol=1e-4, atol=1e-5)


def test_gradients_of_each_example_in_a_script() -> None:
    model = relay.create_model(lenet, seed=0)
    x, y = images(3)
    mapped = relay.vmap(relay.grad(relay.with_params(loss)), in_axes=(None, 0, 0))
    found = mapped(model.params, x[:, None], y[:, None])
    wanted = of_each(model.params, x[:, None], y[:, None])
    for mine, other in zip(found.values(), wanted, strict=True):
        torch.testing.assert_close(mine, other)
