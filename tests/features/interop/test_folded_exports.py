"""An exported model has its batch normalisation in the weights before it, and no dropout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")
Images = Tensor[Float, (N, 4, 8, 8)]


@relay_model
def block(x: Images) -> Images:
    h = relay.conv2d(x, out_channels=4, kernel_size=3, padding=1, bias=False)
    return relay.relu(relay.batch_norm(h))


@relay_model
def residual(x: Tensor[Float, (N, 3, 8, 8)]) -> Tensor[Float, (N, 5)]:
    h = relay.relu(relay.batch_norm(relay.conv2d(x, out_channels=4, kernel_size=3, padding=1)))
    h = relay.dropout(block(h) + h, p=0.3)
    return relay.batch_norm(relay.linear(relay.flatten(h, start_dim=1), out_features=5))


@relay_model
def sequence(x: Tensor[Float, (N, 3, 8)]) -> Tensor[Float, (N, 4, 7)]:
    h = relay.conv1d(x, out_channels=4, kernel_size=2)
    return relay.batch_norm(h, affine=False)


@relay_model
def enlarged(x: Images) -> Tensor[Float, (N, 3, 10, 10)]:
    return relay.batch_norm(relay.conv_transpose2d(x, out_channels=3, kernel_size=3))


@relay_model
def enlarged_in_groups(x: Images) -> Tensor[Float, (N, 4, 10, 10)]:
    h = relay.conv_transpose2d(x, out_channels=4, kernel_size=3, groups=2)
    return relay.batch_norm(h)


@relay_model
def norm_first(x: Images) -> Images:
    return relay.conv2d(relay.batch_norm(x), out_channels=4, kernel_size=3, padding=1)


@relay_model
def shared(x: Images) -> Images:
    for _ in range(2):
        x = relay.batch_norm(relay.conv2d(x, out_channels=4, kernel_size=3, padding=1))
    return x


@relay_model
def used_twice(x: Images) -> Images:
    h = relay.conv2d(x, out_channels=4, kernel_size=3, padding=1)
    return relay.batch_norm(h) + h


def trained(definition: Any, shape: tuple[int, ...]) -> tuple[Model, torch.Tensor]:
    """Return a model with statistics and scales that are not the first ones, and an input."""
    model: Model = relay.create_model(definition, seed=0)
    torch.manual_seed(0)
    for _ in range(3):
        model(torch.randn(8, *shape) * 2 + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval(), torch.randn(4, *shape)


@pytest.mark.parametrize(
    ("definition", "shape"),
    [(residual, (3, 8, 8)), (sequence, (3, 8)), (enlarged, (4, 8, 8))],
    ids=["images", "rows", "transposed"],
)
def test_norms_are_folded_and_values_stay(
    definition: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    model, x = trained(definition, shape)
    exported = relay.export_model(model)
    text = str(exported)
    assert "batch_norm" not in text
    assert "dropout" not in text
    assert "rsqrt" not in text  # what depends on weights alone is computed once
    torch.testing.assert_close(exported(x), model(x).detach(), rtol=1e-4, atol=1e-5)
    exported.save(tmp_path / "model.relay")
    loaded = relay.load_model(tmp_path / "model.relay")
    torch.testing.assert_close(loaded(x), exported(x), rtol=1e-4, atol=1e-5)
    assert str(loaded).count("conv") == text.count("conv")


def test_the_model_itself_stays() -> None:
    model, x = trained(residual, (3, 8, 8))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    relay.export_model(model)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert model(x).shape == (4, 5)


@pytest.mark.parametrize(
    "definition", [shared, used_twice, enlarged_in_groups, norm_first], ids=lambda d: d.__name__
)
def test_what_cannot_be_folded_stays(definition: Any) -> None:
    model, x = trained(definition, (4, 8, 8))
    exported = relay.export_model(model)
    assert "batch_norm" in str(exported)
    torch.testing.assert_close(exported(x), model(x).detach())


def test_gradients_flow_to_the_input() -> None:
    model, x = trained(residual, (3, 8, 8))
    exported = relay.export_model(model)
    first, second = x.clone().requires_grad_(), x.clone().requires_grad_()
    exported(first).sum().backward()
    model(second).sum().backward()
    torch.testing.assert_close(first.grad, second.grad, rtol=1e-4, atol=1e-4)


def test_folded_models_convert_to_torch() -> None:
    model, x = trained(residual, (3, 8, 8))
    graph = relay.export_model(model).to_torch(x)
    called = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
    assert not any("batch_norm" in name for name in called)
    torch.testing.assert_close(graph.module()(x), model(x).detach(), rtol=1e-4, atol=1e-5)


@relay_model
def without_vectors(x: Images) -> Images:
    h = relay.conv2d(x, out_channels=4, kernel_size=3, padding=1, bias=False)
    return relay.batch_norm(h, affine=False)


def test_a_shift_without_a_place_is_computed_from_the_state() -> None:
    model, x = trained(without_vectors, (4, 8, 8))
    exported = relay.export_model(model)
    assert "batch_norm" not in str(exported)
    torch.testing.assert_close(exported(x), model(x).detach(), rtol=1e-4, atol=1e-5)
