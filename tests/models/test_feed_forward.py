"""Networks without recursion against torch's: values and all gradients."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.models import mlp as mlps
from pyrelay.models import transformer
from pyrelay.models.mlp import mlp
from pyrelay.models.transformer import TORCH_NAMES, attention, transformer_block

B, T, C, N, D = Dim("B"), Dim("T"), Dim("C"), Dim("N"), Dim("D")


@relay
def of_block(x: Tensor[Float, (B, T, C)], weights: Tensor[Float, (B, T, C)]) -> Float:
    return (transformer_block(x, heads=4, hidden=24) * weights).sum()


@relay
def of_mlp(x: Tensor[Float, (N, D)], y: Tensor[Float, (N, 10)]) -> Float:
    return relay.softmax_cross_entropy(mlp(x, hidden=6), y)


def encoder(width: int) -> nn.TransformerEncoderLayer:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(
        width, 4, 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )


def block_like(layer: nn.Module, width: int) -> Any:
    model = relay.create_model(
        transformer_block, seed=0, dims={transformer.C: width}, heads=4, hidden=24
    )
    model.load_state_dict(layer.state_dict(), rename=TORCH_NAMES)
    return model


@pytest.mark.parametrize(("batch", "time"), [(1, 1), (2, 5), (3, 7)])
def test_a_transformer_block_is_torchs(batch: int, time: int) -> None:
    layer = encoder(8)
    model = block_like(layer, 8)
    x, weights = torch.randn(batch, time, 8), torch.randn(batch, time, 8)
    torch.testing.assert_close(model(x), layer(x), atol=1e-5, rtol=1e-5)
    value, grads = relay.value_and_grad(model, of_block, (x, weights))
    expected = (layer(x) * weights).sum()
    expected.backward()
    torch.testing.assert_close(value, expected.detach(), atol=1e-4, rtol=1e-5)
    for name, parameter in layer.named_parameters():
        found = grads[TORCH_NAMES.get(name, name)]
        torch.testing.assert_close(found, parameter.grad, atol=1e-5, rtol=1e-4)


def test_attention_is_torchs() -> None:
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 5, 12) for _ in range(3))
    parts = [t.unflatten(2, (3, 4)).transpose(1, 2) for t in (q, k, v)]
    expected = nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention(q, k, v, heads=3), expected)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_an_mlp_is_torchs(layers: int) -> None:
    torch.manual_seed(layers)
    model = relay.create_model(mlp, seed=0, dims={mlps.D: 5}, hidden=6, layers=layers)
    sizes = [5, *[6] * layers]
    steps = [step for a, b in pairwise(sizes) for step in (nn.Linear(a, b), nn.ReLU())]
    reference = nn.Sequential(*steps, nn.Linear(sizes[-1], 10))
    linear = [m for m in reference if isinstance(m, nn.Linear)]
    names = [*(f"linear.{i}" for i in range(layers)), "output"]
    with torch.no_grad():
        for name, module in zip(names, linear, strict=True):
            model.get_parameter(f"{name}.weight").copy_(module.weight)
            model.get_parameter(f"{name}.bias").copy_(module.bias)
    x = torch.randn(4, 5)
    torch.testing.assert_close(model(x), reference(x))
    reference(x).square().sum().backward()
    model(x).square().sum().backward()
    for name, module in zip(names, linear, strict=True):
        torch.testing.assert_close(model.get_parameter(f"{name}.weight").grad, module.weight.grad)
        torch.testing.assert_close(model.get_parameter(f"{name}.bias").grad, module.bias.grad)
