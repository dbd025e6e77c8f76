"""Optimisers as values: defaults, fields of frozen objects, arguments, what they are made with."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Float, Int, Model, Optimizer, RunError, Tensor, relay
from tests.features.models.training import (
    Make,
    N,
    X,
    Y,
    assert_same,
    new_model,
    perceptron,
    script_steps,
    torch_steps,
    train,
)


def test_an_optimizer_may_be_the_default_of_a_parameter() -> None:
    default = relay.optim.adam(0.1)

    @relay
    def fit(
        model: Model[perceptron],
        x: Tensor[Float, (N, 4)],
        y: Tensor[Int, (N,)],
        optimizer: Optimizer = default,
    ) -> Float:
        return train(model, optimizer, x, y, 5)

    @relay
    def twice(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        return fit(model, x, y) + fit(model, x, y)

    model = new_model()
    fit(model, X, Y)
    assert default.state[model].step == 5
    twice(model, X, Y)
    assert default.state[model].step == 15
    assert_same(model, torch_steps("adam", 15), 1e-5)


def test_optimizers_of_one_rule_share_what_is_compiled() -> None:
    before, model = train.cache_info().entries, new_model()
    for lr in (0.1, 0.2):
        train(copy.deepcopy(model), relay.optim.adam(lr, (0.5, 0.6)), X, Y, 1)
    assert train.cache_info().entries == before + 1


@dataclass(frozen=True)
class Config:
    """Settings with an optimiser among them."""

    optimizer: Any
    steps: int


def test_a_frozen_object_may_hold_the_optimizer() -> None:
    config = Config(relay.optim.adam(0.1), 5)

    @relay
    def fit(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        return train(model, config.optimizer, x, y, config.steps)

    model = new_model()
    fit(model, X, Y)
    config = Config(relay.optim.adam(0.1), 2)
    fit(model, X, Y)
    assert config.optimizer.state[model].step == 2
    other = new_model()
    script_steps(other, relay.optim.adam(0.1), 5)
    script_steps(other, relay.optim.adam(0.1), 2)
    assert_same(model, other)


def test_a_function_of_an_optimizer_is_checked_without_one() -> None:
    train.check()
    assert "adam_step" in train.show("typed")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: relay.optim.sgd(-1.0), "learning rate"),
        (lambda: relay.optim.sgd(0.1, nesterov=True), "momentum"),
        (lambda: relay.optim.sgd(0.1, -0.5), "momentum"),
        (lambda: relay.optim.adam(betas=(0.9, 1.0)), "betas"),
        (lambda: relay.optim.adamw(eps=-1e-8), "eps"),
    ],
)
def test_hyper_parameters_that_make_no_sense_are_refused(make: Make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_an_optimizer_of_torch_is_no_argument() -> None:
    model = new_model()
    with pytest.raises(RunError) as caught:
        train(model, torch.optim.Adam(model.parameters()), X, Y, 1)
    assert caught.value.codes == ("RL550",)


def test_memory_follows_the_model_to_its_type() -> None:
    model, optimizer = new_model(), relay.optim.adam(0.1)
    script_steps(model, optimizer, 1)
    model.double()
    trees = optimizer.moments(model).trees
    assert all(t.dtype == torch.float64 for tree in trees for t in tree)
