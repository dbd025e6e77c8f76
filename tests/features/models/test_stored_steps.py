"""Steps of optimisers in kernels: stored over what they move, where no program can notice."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Params, Tensor, options, relay, relay_model
from tests.features.models.training import (
    OPTIMIZERS,
    X,
    Y,
    assert_same,
    each_optimizer,
    loss,
    new_model,
    perceptron,
    script_steps,
    torch_steps,
    train,
)

N = Dim("N")


@relay
def moved(
    model: Model[perceptron], optimizer: Optimizer, x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]
) -> Params[perceptron]:
    before = model.params
    grads = relay.grad(model, loss, (x, y))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return model.params - before


def made(name: str) -> tuple[Any, Any]:
    """Return a model and an optimiser."""
    return new_model(), OPTIMIZERS[name][0]()


@each_optimizer
@pytest.mark.parametrize("lowering", ["c", "torch-regions"])
def test_steps_are_stored_over_parameters_and_moments(lowering: str, name: str) -> None:
    model, optimizer = made(name)
    places: list[list[int]] = []
    with options(lowering=lowering):
        for steps in (2, 1, 3):
            train(model, optimizer, X, Y, steps)
            found = [*model.parameters(), *(t for m in optimizer.state[model].trees for t in m)]
            places.append([t.data_ptr() for t in found])
    assert_same(model, torch_steps(name, 6), 1e-4)
    assert optimizer.state[model].step == 6
    assert places[1:] == places[:-1]


@each_optimizer
def test_a_program_that_reads_old_parameters_keeps_them(name: str) -> None:
    model, optimizer = made(name)
    with options(lowering="c"):
        for _ in range(3):
            before = {n: p.detach().clone() for n, p in model.named_parameters()}
            found = moved(model, optimizer, X, Y)
            for key, param in model.named_parameters():
                torch.testing.assert_close(found[key], param.detach() - before[key])
    assert_same(model, torch_steps(name, 3), 1e-4)


@each_optimizer
def test_parameters_may_lie_column_by_column_or_in_one_storage(name: str) -> None:
    model, optimizer = made(name)
    model.linear_1.weight.data = model.linear_1.weight.data.t().contiguous().t()
    room = torch.zeros(64)
    for p in model.linear_2.parameters():
        room[: p.numel()] = p.detach().reshape(-1)
        p.data = room[: p.numel()].reshape(p.shape)
        room = room[p.numel() :]
    with options(lowering="c"):
        train(model, optimizer, X, Y, 3)
    assert_same(model, torch_steps(name, 3), 1e-4)


def test_scripts_and_compiled_steps_share_counts_and_moments() -> None:
    model, optimizer = made("adam")
    with options(lowering="c"):
        train(model, optimizer, X, Y, 2)
        script_steps(model, optimizer, 2)
        train(model, optimizer, X, Y, 2)
    assert_same(model, torch_steps("adam", 6), 1e-4)
    assert optimizer.state_dict(model)["step"] == 6


def test_a_parameter_that_was_frozen_for_a_while_counts_its_own_steps() -> None:
    model, optimizer = made("adam")
    with options(lowering="c"):
        model.linear_1.weight.requires_grad_(False)
        before = model.linear_1.weight.detach().clone()
        train(model, optimizer, X, Y, 2)
        assert torch.equal(model.linear_1.weight, before)
        model.linear_1.weight.requires_grad_(True)
        train(model, optimizer, X, Y, 3)
    state = optimizer.state_dict(model)
    assert (state["step"], state["late"]) == (5, {"linear_1.weight": 2})


@relay_model
def row(i: Int) -> Tensor[Float, (4,)]:
    return relay.param((5_000, 4))[i]


@relay
def row_loss(i: Int) -> Float:
    return (row(i) ** 2).sum()


@relay
def descended(model: Model[row], old: Tensor[Float, (4,)], i: Int, n: Int) -> Float:
    if n == 0:
        return (old * old).sum()
    relay.update_model_params(model, relay.grad(model, row_loss, (i,)), lr=0.1)
    return descended(model, old, i, n - 1) + old.sum()


@relay
def looking_back(model: Model[row], i: Int, n: Int) -> Float:
    return descended(model, model(i), i, n)


@pytest.mark.parametrize("lowering", ["c", "torch", "torch-regions"])
def test_a_function_that_updates_reads_the_old_row_that_it_is_passed(lowering: str) -> None:
    model = relay.create_model(row, seed=0)
    (table,) = model.parameters()
    old = table[3].detach().clone()
    with options(lowering=lowering):
        found = looking_back(model, 3, 3)
    torch.testing.assert_close(found, 3 * old.sum() + (old * old).sum())
