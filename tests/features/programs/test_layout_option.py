"""The option `layout`: LeNet and a residual network in NHWC have the values, the derivatives and
the parameters that they have without it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Tensor, options, relay, relay_model

N, C, H, W = Dim("N"), Dim("C"), Dim("H"), Dim("W")
LOWERINGS = ("evaluator", "torch", pytest.param("c", marks=pytest.mark.slow))


@relay_model
def lenet(x: Tensor[Float, (N, 1, 16, 16)]) -> Tensor[Float, (N, 10)]:
    conv1 = relay.conv2d(x, out_channels=4, kernel_size=5)
    pool1 = relay.max_pool2d(relay.tanh(conv1), kernel_size=2)
    conv2 = relay.conv2d(pool1, out_channels=6, kernel_size=3)
    pool2 = relay.max_pool2d(relay.tanh(conv2), kernel_size=2)
    fc1 = relay.linear(relay.flatten(pool2, start_dim=1), out_features=12)
    return relay.linear(relay.tanh(fc1), out_features=10)


@relay
def loss(x: Tensor[Float, (N, 1, 16, 16)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(lenet(x), y)


@relay_model
def block(x: Tensor[Float, (N, 4, H, W)]) -> Tensor[Float, (N, 4, H, W)]:
    y = relay.conv2d(x, out_channels=4, kernel_size=3, padding=1, bias=False)
    y = relay.silu(relay.batch_norm(y))
    y = relay.conv2d(y, out_channels=4, kernel_size=3, padding=1, bias=False)
    return relay.silu(x + relay.batch_norm(y))


@relay_model
def residual(x: Tensor[Float, (N, 3, 12, 8)]) -> Tensor[Float, (N, 5)]:
    y = relay.avg_pool2d(relay.conv2d(x, out_channels=4, kernel_size=3, padding=1), kernel_size=2)
    y = relay.adaptive_avg_pool2d(block(block(y)), output_size=1)
    return relay.linear(relay.flatten(y, start_dim=1), out_features=5)


@relay
def size(x: Tensor[Float, (N, 3, 12, 8)]) -> Float:
    return relay.mean(residual(x) ** 2)


@relay
def step(model: Model[residual], x: Tensor[Float, (N, 3, 12, 8)]) -> Float:
    value, grads = relay.value_and_grad(model, size, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def pair(
    x: Tensor[Float, (N, 3, 12, 8)], v: Tensor[Float, (4, 3, 3, 3)], w: Tensor[Float, (4, 4, 1, 1)]
) -> Tensor[Float, (N, 4)]:
    y = relay.silu(relay.conv2d(x, v, padding=1))
    y = relay.max_pool2d(relay.conv2d(y, w) + y, kernel_size=2)
    return relay.mean(y, dim=(2, 3))


@relay
def pair_size(
    x: Tensor[Float, (N, 3, 12, 8)], v: Tensor[Float, (4, 3, 3, 3)], w: Tensor[Float, (4, 4, 1, 1)]
) -> Float:
    return relay.sum(pair(x, v, w) ** 2)


def assert_same(found: Any, wanted: Any) -> None:
    """Compare values up to the order of summation."""
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def in_both(lowering: str, run: Callable[[], Any]) -> None:
    """Compare what runs in NHWC with what runs as it is written."""
    with options(lowering=lowering):
        wanted = run()
        with options(layout="NHWC"):
            assert_same(run(), wanted)


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_lenet_has_the_same_gradients(lowering: str) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 1, 16, 16), torch.tensor([1, 0, 9])
    model = relay.create_model(lenet, seed=0)

    def run() -> list[Any]:
        value, grads = relay.value_and_grad(model, loss, (x, y))
        return [value.detach(), model(x).detach(), *grads.values()]

    in_both(lowering, run)


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_a_residual_network_trains_to_the_same_state(lowering: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3, 12, 8)
    model = relay.create_model(residual, seed=0)

    def run() -> dict[str, Any]:
        trained = copy.deepcopy(model)
        values = torch.stack([step(trained, x) for _ in range(3)])
        trained.eval()
        return {"values": values, "result": trained(x).detach(), **trained.state_dict()}

    in_both(lowering, run)


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_derivatives_and_batches_are_the_same(lowering: str) -> None:
    torch.manual_seed(0)
    x, *weights = (torch.randn(s) for s in ((2, 3, 12, 8), (4, 3, 3, 3), (4, 4, 1, 1)))
    directions = tuple(torch.randn_like(t) for t in (x, *weights))
    axes = (0, None, None)

    def run() -> list[Any]:
        batch = torch.stack([x, x * 2])
        return [
            relay.grad(pair_size)(x, *weights),
            relay.jvp(pair)((x, *weights), directions),
            relay.vmap(pair, in_axes=axes)(batch, *weights),
            relay.vmap(relay.grad(pair_size, wrt="v"), in_axes=axes)(batch, *weights),
            relay.hvp(pair_size)((x, *weights), directions),
        ]

    in_both(lowering, run)


def test_exported_networks_run_in_the_layout(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 12, 8)
    model = relay.create_model(residual, seed=0).eval()
    wanted = model(x).detach()
    names = list(model.state_dict())
    with options(layout="NHWC"):
        exported = relay.export_model(model)
        assert_same(exported(x), wanted)
        exported.save(tmp_path / "model")
        assert_same(relay.load_model(tmp_path / "model")(x), wanted)
        assert_same(exported.to_torch(x).module()(x), wanted)
    assert list(model.state_dict()) == names


def test_the_anf_shows_two_conversions() -> None:
    with options(layout="NHWC"):
        assert pair.show("anf").count("permute_copy") == 2
    assert "permute" not in pair.show("anf")
