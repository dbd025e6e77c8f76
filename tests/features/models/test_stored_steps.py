"""Steps of optimisers in kernels: stored over what they move, where no program can notice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Params, Tensor, options, relay, relay_model

N = Dim("N")
X = torch.linspace(-1.0, 1.0, 15).reshape(5, 3)

MAKERS: dict[str, Callable[[], Optimizer]] = {
    "sgd": lambda: relay.optim.sgd(lr=0.1),
    "nesterov": lambda: relay.optim.sgd(0.1, 0.9, 0.1, nesterov=True),
    "adam": lambda: relay.optim.adam(lr=0.1, weight_decay=0.1),
    "adamw": lambda: relay.optim.adamw(lr=0.1),
}
THEIRS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.1, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, 0.1),
}


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=4)), out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return (net(x) ** 2).mean()


@relay
def fit(model: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)], steps: Int) -> Float:
    value = 0.0
    for _ in range(steps):
        value, grads = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def moved(model: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)]) -> Params[net]:
    before = model.params
    grads = relay.grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return model.params - before


def trained(name: str, run: Callable[[Any, Any], None]) -> tuple[Any, Any, Any]:
    """Return a model and its optimiser after `run`, and a copy that torch has trained as often."""
    model, optimizer = relay.create_model(net, seed=0), MAKERS[name]()
    other = copy.deepcopy(model)
    run(model, optimizer)
    theirs = THEIRS[name](other.parameters())
    for _ in range(optimizer.state[model].step):
        theirs.zero_grad()
        loss_of = (other(X) ** 2).mean()
        loss_of.backward()
        theirs.step()
    return model, optimizer, other


def check(model: Any, other: Any) -> None:
    """Compare the parameters of two models."""
    for mine, expected in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lowering", ["c", "torch-regions"])
@pytest.mark.parametrize("name", MAKERS)
def test_steps_are_stored_over_parameters_and_moments(name: str, lowering: str) -> None:
    places: list[list[int]] = []

    def run(model: Any, optimizer: Any) -> None:
        for steps in (2, 1, 3):
            fit(model, optimizer, X, steps)
            found = [*model.parameters(), *(t for m in optimizer.state[model].trees for t in m)]
            places.append([t.data_ptr() for t in found])

    with options(lowering=lowering):
        model, optimizer, other = trained(name, run)
    check(model, other)
    assert optimizer.state[model].step == 6
    assert places[1:] == places[:-1]


@pytest.mark.parametrize("name", MAKERS)
def test_a_program_that_reads_old_parameters_keeps_them(name: str) -> None:
    def run(model: Any, optimizer: Any) -> None:
        for _ in range(3):
            before = {n: p.detach().clone() for n, p in model.named_parameters()}
            found = moved(model, optimizer, X)
            for key, param in model.named_parameters():
                torch.testing.assert_close(found[key], param.detach() - before[key])

    with options(lowering="c"):
        model, _, other = trained(name, run)
    check(model, other)


@pytest.mark.parametrize("name", MAKERS)
def test_parameters_may_lie_column_by_column_or_overlap(name: str) -> None:
    def run(model: Any, optimizer: Any) -> None:
        model.linear_1.weight.data = model.linear_1.weight.data.t().contiguous().t()
        room = torch.zeros(64)
        for p in model.linear_2.parameters():
            room[: p.numel()] = p.detach().reshape(-1)
            p.data = room[: p.numel()].reshape(p.shape)
            room = room[p.numel() :]
        for _ in range(3):
            fit(model, optimizer, X, 1)

    with options(lowering="c"):
        model, _, other = trained(name, run)
    check(model, other)


def test_scripts_and_compiled_steps_share_counts_and_moments() -> None:
    def run(model: Any, optimizer: Any) -> None:
        fit(model, optimizer, X, 2)
        for _ in range(2):
            grads = relay.grad(model, loss, (X,))
            relay.update_model_params(model, grads, optimizer=optimizer)
        fit(model, optimizer, X, 2)

    with options(lowering="c"):
        model, optimizer, other = trained("adam", run)
    check(model, other)
    assert optimizer.state_dict(model)["step"] == 6


def test_a_parameter_that_was_frozen_for_a_while_counts_its_own_steps() -> None:
    model, optimizer = relay.create_model(net, seed=0), MAKERS["adam"]()
    with options(lowering="c"):
        model.linear_1.weight.requires_grad_(False)
        before = model.linear_1.weight.detach().clone()
        fit(model, optimizer, X, 2)
        assert torch.equal(model.linear_1.weight, before)
        model.linear_1.weight.requires_grad_(True)
        fit(model, optimizer, X, 3)
    state = optimizer.state_dict(model)
    assert (state["step"], state["late"]) == (5, {"linear_1.weight": 2})
