"""Calls that join torch's graph again and again, whose nodes are made directly."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pyrelay import Dim, Float, Model, RunError, Tensor, relay, relay_model
from pyrelay.runtime.compile.program import Program
from pyrelay.runtime.entries import autograd_function
from pyrelay.runtime.entries.entry import Entry

N = Dim("N")


@relay_model
def layer(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 4)]:
    return relay.tanh(relay.linear(x, out_features=4))


@relay_model
def normed(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return relay.batch_norm(x) * 2.0


@relay
def distance(x: Tensor[Float, (N, 3)], y: Tensor[Float, (N, 4)]) -> Float:
    return relay.mse_loss(layer(x), y)


def peer(model: Model[Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.tanh(nn.functional.linear(x, *model.parameters()))


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the functions whose calls are not direct."""
    names: list[str] = []
    plain = Entry.__call__

    def noted(entry: Entry, values: Any) -> Any:
        names.append(entry.name)
        return plain(entry, values)

    monkeypatch.setattr(Entry, "__call__", noted)
    return names


def test_gradients_are_those_of_torch(general: list[str]) -> None:
    model, x = relay.create_model(layer, seed=0), torch.randn(2, 3)
    params = list(model.parameters())
    for _ in range(3):
        ours = torch.autograd.grad(model(x).square().sum(), params)
        torch.testing.assert_close(ours, torch.autograd.grad(peer(model)(x).square().sum(), params))
    assert general.count("layer") <= 1


def test_what_requires_a_gradient_may_change(general: list[str]) -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 4)]:
        return relay.tanh(relay.linear(x, out_features=4))

    model, plain = relay.create_model(net, seed=0), torch.randn(2, 3)
    moving = plain.clone().requires_grad_()
    weight, bias = model.parameters()
    for x, wanted in ((plain, [weight, bias]), (moving, [moving, weight]), (moving, [moving])) * 2:
        ours = torch.autograd.grad(model(x).sum(), wanted)
        torch.testing.assert_close(ours, torch.autograd.grad(peer(model)(x).sum(), wanted))
    weight.requires_grad_(False)
    for _ in range(2):
        (ours,) = torch.autograd.grad(model(plain).sum(), bias)
        torch.testing.assert_close(ours, torch.autograd.grad(peer(model)(plain).sum(), bias)[0])
    bias.requires_grad_(False)
    for _ in range(2):
        assert not model(plain).requires_grad
    assert len(general) == 4


def test_calls_that_torch_records_and_others_may_alternate(general: list[str]) -> None:
    model, x = relay.create_model(layer, seed=0), torch.randn(2, 3)
    for _ in range(4):
        assert model(x).requires_grad
        with torch.no_grad():
            assert not model(x).requires_grad
    assert general.count("layer") <= 2


def test_models_are_trained_in_a_loop_of_torch(general: list[str]) -> None:
    model, other = relay.create_model(layer, seed=0), relay.create_model(layer, seed=0)
    x, y = torch.randn(5, 3), torch.randn(5, 4)
    loss = model.bind(distance)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other)]
    for _ in range(4):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(x, y).backward()
        nn.functional.mse_loss(peer(other)(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(model.state_dict(), other.state_dict())
    assert general == ["distance"]


def test_running_statistics_move() -> None:
    model, module = relay.create_model(normed, seed=0), nn.BatchNorm1d(3)
    for _ in range(4):
        x = torch.randn(6, 3)
        ours, theirs = model(x), module(x) * 2.0
        torch.testing.assert_close(ours, theirs)
        params = list(model.parameters()), list(module.parameters())
        found = (
            torch.autograd.grad(y.square().sum(), p)
            for y, p in zip((ours, theirs), params, strict=True)
        )
        torch.testing.assert_close(*found)
    torch.testing.assert_close(model.state_dict()["batch_norm_1.running_mean"], module.running_mean)


def test_gradients_may_be_differentiated() -> None:
    model, x = relay.create_model(layer, seed=0), torch.randn(2, 3, requires_grad=True)
    params = list(model.parameters())
    for _ in range(3):
        found: list[Any] = []
        for function in (model, peer(model)):
            (slope,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
            found.append(torch.autograd.grad(slope.square().sum(), params))
        torch.testing.assert_close(*found)


def test_torch_tells_of_what_has_changed_or_is_freed() -> None:
    model, x = relay.create_model(layer, seed=0), torch.randn(2, 3)
    for _ in range(3):
        result = model(x).sum()
        with torch.no_grad():
            next(model.parameters()).add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()
        result = model(x).sum()
        result.backward()
        with pytest.raises(RuntimeError, match="second time"):
            result.backward()


def test_a_graph_is_freed_with_its_result() -> None:
    model, x = relay.create_model(layer, seed=0), torch.randn(2, 3)
    for _ in range(2):
        model(x)
    gc.disable()
    try:
        result = model(x)
        assert result.grad_fn is not None
        node = weakref.ref(result.grad_fn)
        del result
        assert node() is None
    finally:
        gc.enable()


def test_tensors_of_inference_mode_are_taken() -> None:
    model = relay.create_model(layer, seed=0)
    with torch.inference_mode():
        x = torch.ones(2, 3)
    for _ in range(3):
        model(x).sum().backward()


@relay
def checked(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    y = x * 2.0
    assert y.sum() < 10.0, "too large"
    return relay.exp(y)


def test_errors_are_at_the_users_line() -> None:
    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        checked(x)
    with torch.no_grad():
        x.fill_(5.0)
    with pytest.raises(RunError, match="too large"):
        checked(x)


def test_no_gradient_is_computed_for_what_requires_none(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 4)]:
        return relay.tanh(relay.linear(x, out_features=4))

    wanted: list[Any] = []
    plain = autograd_function.pullback_of

    def noted(program: Program, places: tuple[int, ...]) -> Program:
        wanted.append(places)
        return plain(program, places)

    monkeypatch.setattr(autograd_function, "pullback_of", noted)
    model = relay.create_model(net, seed=0)
    model(torch.randn(2, 3))
    model(torch.randn(2, 3, requires_grad=True))
    assert wanted == [(0,), (0, 2)]


def test_transforms_in_a_model_are_direct_too(general: list[str]) -> None:
    model, x, y = relay.create_model(layer, seed=0), torch.randn(5, 3), torch.randn(5, 4)
    params = list(model.parameters())
    for _ in range(3):
        value, grads = relay.value_and_grad(model, distance, (x, y))
        expected = nn.functional.mse_loss(peer(model)(x), y)
        torch.testing.assert_close(value, expected.detach())
        slopes = torch.autograd.grad(expected, params)
        torch.testing.assert_close(tuple(grads.values()), slopes)
        relay.update_model_params(model, grads, lr=0.1)
    assert general == ["distance"]
    params[0].requires_grad_(False)
    for _ in range(2):
        assert relay.grad(model, distance, [x, y])["linear_1.bias"].shape == (4,)
    assert len(general) == 2
