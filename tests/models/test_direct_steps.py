"""Training steps that are like one before are direct calls, and what changes is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, RunError, Tensor, relay, relay_model
from pyrelay.runtime.entries.entry import Entry

pytestmark = pytest.mark.host("the evaluator has no direct calls")

N = Dim("N")
Batch = Tensor[Float, (N, 4)]
momentum = relay.optim.sgd(lr=0.1, momentum=0.9)


@relay_model
def net(x: Batch) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=3)), out_features=2)


@relay
def loss(x: Batch) -> Float:
    return relay.sum(net(x) ** 2)


@relay
def descend(model: Model[net], x: Batch) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def step(model: Model[net], x: Batch) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=momentum)
    return value


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the functions whose calls take the general path."""
    found: list[str] = []
    call = Entry.__call__

    def noted(self: Entry, values: Sequence[Any]) -> Any:
        found.append(self.name)
        return call(self, values)

    monkeypatch.setattr(Entry, "__call__", noted)
    return found


def _by_torch(model: Model[Any], optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    w, b, v, c = model.parameters()
    value = ((torch.tanh(x @ w.T + b) @ v.T + c) ** 2).sum()
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return value.detach()


@pytest.mark.parametrize(("run", "beta"), [(descend, 0.0), (step, 0.9)])
def test_the_second_step_is_direct(general: list[str], run: Any, beta: float) -> None:
    model, other = (relay.create_model(net, seed=0) for _ in range(2))
    sgd = torch.optim.SGD(other.parameters(), lr=0.1, momentum=beta)
    run(model, torch.randn(5, 4))
    model.load_state_dict(other.state_dict())
    momentum.state.clear()
    general.clear()
    for _ in range(4):
        x = torch.randn(5, 4)
        torch.testing.assert_close(run(model, x), _by_torch(other, sgd, x))
    assert general == []
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_another_model_of_the_same_definition_is_direct_too(general: list[str]) -> None:
    x = torch.randn(5, 4)
    first, second = (relay.create_model(net, seed=seed) for seed in (0, 1))
    descend(first, x)
    general.clear()
    before = [p.detach().clone() for p in first.parameters()]
    descend(second, x)
    assert general == []
    for own, kept in zip(first.parameters(), before, strict=True):
        torch.testing.assert_close(own.detach(), kept)


def test_a_rate_that_changes_counts_in_the_next_step(general: list[str]) -> None:
    x = torch.randn(5, 4)
    model = relay.create_model(net, seed=0)
    step(model, x)
    general.clear()
    momentum.lr = 0.0
    momentum.state.clear()
    before = [p.detach().clone() for p in model.parameters()]
    try:
        step(model, x)
    finally:
        momentum.lr = 0.1
    assert general == []
    for own, kept in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(own.detach(), kept)


def test_parameters_that_are_frozen_later_stay() -> None:
    x = torch.randn(5, 4)
    model = relay.create_model(net, seed=0)
    descend(model, x)
    frozen, *moved = model.parameters()
    frozen.requires_grad_(requires_grad=False)
    before = [p.detach().clone() for p in model.parameters()]
    descend(model, x)
    torch.testing.assert_close(frozen, before[0])
    assert not any(torch.equal(p, old) for p, old in zip(moved, before[1:], strict=True))


def test_what_does_not_fit_is_refused_after_direct_steps() -> None:
    model = relay.create_model(net, seed=0)
    for _ in range(2):
        descend(model, torch.randn(5, 4))
    with pytest.raises(RunError, match="float64"):
        descend(model, torch.randn(5, 4).double())
    with pytest.raises(RunError, match="`model`"):
        descend(torch.randn(3), torch.randn(5, 4))  # pyright: ignore[reportArgumentType, reportCallIssue]
