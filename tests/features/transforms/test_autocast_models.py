"""Mixed precision in whole models: values and gradients beside those of float32, under a scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model
from pyrelay.config import options
from pyrelay.models import mlp as mlps
from pyrelay.models import recurrent, transformer
from pyrelay.models.loss_scale import LossScale, fixed_loss_scale
from pyrelay.models.mlp import mlp
from pyrelay.models.recurrent import encode, lstm_cell
from pyrelay.models.transformer import transformer_block
from pyrelay.prelude import List
from tests.features.transforms.test_autocast import ROUNDING, distance

N, D, B, H = Dim("N"), Dim("D"), Dim("B"), Dim("H")


@relay_model
def lenet(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    h = relay.conv2d(x, out_channels=20, kernel_size=5)
    h = relay.avg_pool2d(relay.tanh(h), kernel_size=2)
    h = relay.conv2d(h, out_channels=50, kernel_size=5)
    h = relay.avg_pool2d(relay.tanh(h), kernel_size=2)
    h = relay.linear(relay.flatten(h, start_dim=1), out_features=500)
    return relay.linear(relay.tanh(h), out_features=10)


@relay
def of_lenet(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def of_mlp(x: Tensor[Float, (N, D)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(mlp(x), y)


@relay
def of_lstm(xs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]) -> Float:
    hidden, memory = encode(lstm_cell, xs, (start, start))
    return (hidden * hidden + memory).mean()


@relay
def of_transformer(x: Tensor[Float, (2, 3, 16)], y: Tensor[Float, (2, 3, 16)]) -> Float:
    return ((transformer_block(x, heads=2, hidden=32) - y) ** 2).mean()


# So small that float16 rounds most of their gradients to zero, unless they are scaled.


@relay
def small_lenet(x: Tensor[Float, (N, 1, 28, 28)], y: Tensor[Int, (N,)], scale: LossScale) -> Float:
    return scale.scaled(1e-9 * relay.autocast(of_lenet, policy="float16")(x, y))


@relay
def small_mlp(x: Tensor[Float, (N, D)], y: Tensor[Int, (N,)], scale: LossScale) -> Float:
    return scale.scaled(1e-9 * relay.autocast(of_mlp, policy="float16")(x, y))


@relay
def small_lstm(
    xs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)], scale: LossScale
) -> Float:
    return scale.scaled(1e-9 * relay.autocast(of_lstm, policy="float16")(xs, start))


@relay
def small_transformer(
    x: Tensor[Float, (2, 3, 16)], y: Tensor[Float, (2, 3, 16)], scale: LossScale
) -> Float:
    return scale.scaled(1e-9 * relay.autocast(of_transformer, policy="float16")(x, y))


@dataclass(frozen=True)
class Case:
    make: Callable[[], Any]
    loss: Any
    small: Any
    args: Callable[[], tuple[Any, ...]]


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


CLASSES = torch.arange(6) % 3
CASES = {
    "LeNet": Case(
        lambda: relay.create_model(lenet, seed=0),
        of_lenet,
        small_lenet,
        lambda: (drawn(6, 1, 28, 28), CLASSES),
    ),
    "MLP": Case(
        lambda: relay.create_model(mlp, seed=0, dims={mlps.D: 12}, hidden=32),
        of_mlp,
        small_mlp,
        lambda: (drawn(6, 12), CLASSES),
    ),
    "LSTM": Case(
        lambda: relay.create_model(lstm_cell, seed=0, dims={recurrent.D: 3, recurrent.H: 8}),
        of_lstm,
        small_lstm,
        lambda: ([drawn(2, 3) * (i + 1.0) for i in range(5)], drawn(2, 8)),
    ),
    "transformer": Case(
        lambda: relay.create_model(
            transformer_block, seed=0, dims={transformer.C: 16}, heads=2, hidden=32
        ),
        of_transformer,
        small_transformer,
        lambda: (drawn(2, 3, 16), drawn(2, 3, 16)),
    ),
}

MOST = 4
"""How far values and gradients may be from those of float32, in units of the narrow rounding."""


@pytest.mark.parametrize("lowering", ["evaluator", "torch", "c"])
@pytest.mark.parametrize("policy", ROUNDING)
@pytest.mark.parametrize("name", CASES)
def test_a_model_in_half_precision_is_near_float32(name: str, policy: str, lowering: str) -> None:
    case = CASES[name]
    model, args, unit = case.make(), case.args(), ROUNDING[policy]
    value, grads = relay.value_and_grad(model, case.loss, args)
    with options(lowering=lowering):
        narrow = relay.autocast(case.loss, policy=policy)
        found, narrow_grads = relay.value_and_grad(model, narrow, args)
    assert distance(found, value) < MOST * unit
    for key in grads:
        assert narrow_grads[key].dtype == torch.float32
        assert 0 < distance(narrow_grads[key], grads[key]) < MOST * unit, key


@pytest.mark.parametrize("name", CASES)
def test_small_gradients_of_a_model_are_saved_by_a_scale(name: str) -> None:
    case = CASES[name]
    model, args = case.make(), case.args()
    grads = relay.grad(model, case.loss, args) * 1e-9
    one, scale = fixed_loss_scale(1.0), fixed_loss_scale(2.0**30)
    lost = relay.grad(model, case.small, (*args, one))
    saved = relay.grad(model, case.small, (*args, scale)) * scale.inverse()
    assert (lost - grads).norm() > 0.5 * grads.norm()
    for key in grads:
        assert distance(saved[key], grads[key]) < MOST * ROUNDING["float16"], key
