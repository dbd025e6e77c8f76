"""Parameters that require no gradient: they stay, and nothing computes their gradient."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, RunError, Tensor, relay, relay_model
from pyrelay.text.printer import to_text
from tests.features.models.training import (
    OPTIMIZERS,
    N,
    X,
    Y,
    assert_same,
    each_optimizer,
    loss,
    new_model,
    script_steps,
    train,
)

M = Dim("M")


def freeze(model: Any) -> torch.Tensor:
    """Freeze the first weight; return what it is."""
    model.linear_1.weight.requires_grad_(False)
    return model.linear_1.weight.detach().clone()


@each_optimizer
def test_a_frozen_parameter_stays_in_scripts_and_programs_as_in_torch(name: str) -> None:
    model, optimizer = new_model(), OPTIMIZERS[name][0]()
    weight = freeze(model)
    script_steps(model, optimizer, 3)
    train(model, optimizer, X, Y, 3)
    assert torch.equal(model.linear_1.weight, weight)
    reference = new_model()
    freeze(reference)
    script_steps(reference, OPTIMIZERS[name][1](reference.parameters()), 6)
    assert_same(model, reference)
    assert not torch.equal(model.linear_2.weight, new_model().linear_2.weight)


@each_optimizer
def test_a_thawed_parameter_moves_as_in_torch(name: str) -> None:
    model, optimizer = new_model(), OPTIMIZERS[name][0]()
    reference = new_model()
    torchs = OPTIMIZERS[name][1](reference.parameters())
    for each, stepper in ((model, optimizer), (reference, torchs)):
        freeze(each)
        script_steps(each, stepper, 3)
        each.linear_1.weight.requires_grad_(True)
        script_steps(each, stepper, 3)
    assert_same(model, reference)


@each_optimizer
def test_a_program_counts_the_steps_of_each_parameter(name: str) -> None:
    model, optimizer = new_model(), OPTIMIZERS[name][0]()
    reference = new_model()
    torchs = OPTIMIZERS[name][1](reference.parameters())
    freeze(model)
    train(model, optimizer, X, Y, 2)
    script_steps(model, optimizer, 1)
    model.linear_1.weight.requires_grad_(True)
    train(model, optimizer, X, Y, 2)
    freeze(reference)
    script_steps(reference, torchs, 3)
    reference.linear_1.weight.requires_grad_(True)
    script_steps(reference, torchs, 2)
    assert_same(model, reference)
    script_steps(model, optimizer, 2)
    script_steps(reference, torchs, 2)
    assert_same(model, reference)
    assert optimizer.state_dict(model)["late"] == {"linear_1.weight": 3}


@each_optimizer
def test_the_memory_of_a_thawed_parameter_survives_saving(name: str) -> None:
    model, optimizer = new_model(), OPTIMIZERS[name][0]()
    freeze(model)
    script_steps(model, optimizer, 3)
    model.linear_1.weight.requires_grad_(True)
    other, again = copy.deepcopy(model), OPTIMIZERS[name][0]()
    again.load_state_dict(other, copy.deepcopy(optimizer.state_dict(model)))
    for each, stepper in ((model, optimizer), (other, again)):
        script_steps(each, stepper, 2)
    assert_same(model, other, 0.0)


def test_plain_descent_leaves_a_frozen_parameter() -> None:
    model = new_model()
    _, before = relay.value_and_grad(model, loss, (X, Y))
    weight = freeze(model)
    _, grads = relay.value_and_grad(model, loss, (X, Y))
    relay.update_model_params(model, grads, lr=0.5)
    relay.update_model_params(model, dict(before), lr=0.5)
    assert torch.equal(model.linear_1.weight, weight)
    assert not grads["linear_1.weight"].any()
    assert torch.equal(grads["linear_1.bias"], before["linear_1.bias"])


def test_a_program_descends_in_place_around_a_frozen_parameter() -> None:
    @relay
    def fit(model: Model[perceptron_like], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        value = 0.0
        for _ in range(3):
            value, grads = relay.value_and_grad(model, error, (x, y))
            relay.update_model_params(model, grads, lr=0.5)
        return value

    model = relay.create_model(perceptron_like, seed=0)
    other = copy.deepcopy(model)
    for each in (model, other):
        each.first.linear_1.weight.requires_grad_(False)
    kept = model.first.linear_1.weight.detach().clone()
    storage = model.linear_1.weight.data_ptr()
    fit(model, X, Y)
    for _ in range(3):
        relay.update_model_params(other, relay.grad(other, error, (X, Y)), lr=0.5)
    assert torch.equal(model.first.linear_1.weight, kept)
    assert model.linear_1.weight.data_ptr() == storage
    assert_same(model, other)
    (program,) = programs(fit)
    assert "descend_in_place" in to_text(program.simplified)


def programs(function: Any) -> list[Any]:
    """Return the programs of a function that has been called."""
    return [compiled.entry.program for compiled in function.runner._compiled.values()]


@relay_model
def layer(x: Tensor[Float, (N, M)]):
    return relay.linear(x, out_features=8)


@relay_model
def perceptron_like(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 3)]:
    first = layer(x)
    return relay.linear(relay.tanh(first), out_features=3)


@relay
def error(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(perceptron_like(x), y)


def test_the_gradient_of_a_frozen_parameter_is_not_computed() -> None:
    @relay
    def own(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        return error(x, y)

    model = relay.create_model(perceptron_like, seed=0)
    for is_free in (True, False):
        model.first.linear_1.weight.requires_grad_(is_free)
        relay.value_and_grad(model, own, (X, Y))
    free, frozen = (to_text(p.derived).count("= matmul(") for p in programs(own))
    assert (free, frozen) == (3, 2)


def test_parameters_that_are_values_know_which_are_frozen() -> None:
    model = new_model()
    weight = freeze(model)
    pure = relay.with_params(loss)
    params = relay.sgd(model.params, relay.grad(pure)(model.params, X, Y), 0.5)
    assert torch.equal(params["linear_1.weight"], weight)
    assert not torch.equal(params["linear_2.weight"], model.linear_2.weight)


def test_torch_autograd_skips_a_frozen_parameter() -> None:
    model = new_model()
    freeze(model)
    model(X).sum().backward()
    assert model.linear_1.weight.grad is None
    assert model.linear_1.bias.grad is not None


def test_a_frozen_teacher_passes_gradients_to_what_it_is_called_with() -> None:
    @relay
    def judged(x: Tensor[Float, (N, 4)], teacher: Model[layer4]) -> Float:
        return (teacher(student(x)) ** 2).mean()

    teacher = relay.create_model(layer4, seed=2)
    model = relay.create_model(student, seed=3)
    free = relay.grad(model, judged, (X, teacher))
    teacher.requires_grad_(False)
    frozen = relay.grad(model, judged, (X, teacher))
    assert torch.equal(free["linear_1.weight"], frozen["linear_1.weight"])
    with pytest.raises(RunError, match="requires a gradient"):
        relay.grad(teacher, layer4_loss, (X,))


@relay_model
def layer4(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    return relay.linear(x, out_features=4)


@relay
def layer4_loss(x: Tensor[Float, (N, 4)]) -> Float:
    return layer4(x).sum()


@relay_model
def student(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    return relay.linear(x, out_features=4)


def test_an_exported_model_with_frozen_parameters_is_the_same_function(tmp_path: Path) -> None:
    model = new_model()
    expected = model(X).detach()
    freeze(model)
    assert torch.equal(model(X), expected)
    predict = relay.export_model(model)
    predict.save(tmp_path / "m.relay")
    assert torch.equal(relay.load_model(tmp_path / "m.relay")(X), expected)
    assert not copy.deepcopy(model).linear_1.weight.requires_grad


def test_freezing_and_thawing_use_the_programs_that_are_there() -> None:
    model, optimizer = new_model(), relay.optim.adam(0.1)

    @relay
    def fit(
        model: Model[layer4], optimizer: Optimizer, x: Tensor[Float, (N, 4)], steps: Int
    ) -> Float:
        value = 0.0
        for _ in range(steps):
            value, grads = relay.value_and_grad(model, layer4_loss, (x,))
            relay.update_model_params(model, grads, optimizer=optimizer)
        return value

    model = relay.create_model(layer4, seed=0)
    for turn in range(6):
        model.linear_1.bias.requires_grad_(turn % 2 == 0)
        bias = model.linear_1.bias.detach().clone()
        fit(model, optimizer, X, 1)
        assert torch.equal(bias, model.linear_1.bias) == (turn % 2 == 1)
    assert fit.cache_info().entries == 2


def test_a_gradient_that_does_not_fit_changes_nothing() -> None:
    model = new_model()
    before = copy.deepcopy(model)
    grads = dict(relay.grad(model, loss, (X, Y)))
    grads["linear_2.bias"] = torch.zeros(7)
    with pytest.raises(RunError, match=r"linear_2\.bias"):
        relay.update_model_params(model, grads, optimizer=relay.optim.adam())
    assert_same(model, before, 0.0)
