"""Calls with models that are direct from the second on: whatever changes about a model counts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Model, RunError, Tensor, options, relay, relay_model
from tests.tolerances import assert_program

N = Dim("N")
Rows = Tensor[Float, (N, 4)]
X = torch.linspace(-1.0, 1.0, 20).reshape(5, 4)


@relay_model
def layer(x: Rows) -> Tensor[Float, (N, 3)]:
    return relay.tanh(relay.batch_norm(relay.linear(x, out_features=3)))


@relay
def mean_square(x: Rows) -> Float:
    return (layer(x) ** 2.0).mean()


descent = relay.optim.sgd(lr=0.1, momentum=0.9)


@relay
def step(model: Model[layer], x: Rows) -> Float:
    value, grads = relay.value_and_grad(model, mean_square, (x,))
    relay.update_model_params(model, grads, optimizer=descent)
    return value


@relay
def plain_step(model: Model[layer], x: Rows) -> Float:
    value, grads = relay.value_and_grad(model, mean_square, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def scaled(model: Model[layer], x: Rows, by: Float) -> Tensor[Float, (N, 3)]:
    return model(x) * by


@pytest.fixture
def model() -> Any:
    """A model whose calls under `no_grad` are direct."""
    made = relay.create_model(layer, seed=0)
    with torch.no_grad():
        made(X)
        made(X)
    return made


@pytest.fixture(autouse=True)
def fresh_memory() -> None:
    descent.state.clear()
    descent.lr = 0.1


def is_as_evaluated(function: Callable[[Any], Any], model: Any) -> None:
    """Assert that a call gives, and leaves in the model, what the evaluator does."""
    other = copy.deepcopy(model)
    if model in descent.state:
        descent.load_state_dict(other, descent.state_dict(model))
    with options(lowering="evaluator"):
        expected = function(other)
    assert_program(function(model), expected)
    assert_program(tuple(model.state_dict().values()), tuple(other.state_dict().values()))


def forward(model: Any) -> Any:
    with torch.no_grad():
        return model(X)


def trained(model: Any) -> Any:
    return step(model, X)


def test_a_model_changes_between_calls(model: Any) -> None:
    is_as_evaluated(forward, model)
    model.eval()
    is_as_evaluated(forward, model)
    model.train()
    is_as_evaluated(forward, model)
    model.load_state_dict({n: v + 0.5 for n, v in model.state_dict().items()})
    is_as_evaluated(forward, model)
    is_as_evaluated(forward, relay.create_model(layer, seed=1))
    is_as_evaluated(forward, model)


def test_steps_of_an_optimiser_follow_each_other(model: Any) -> None:
    for rate in (0.1, 0.1, 0.1, 0.02, 0.02):
        descent.lr = rate
        is_as_evaluated(trained, model)
    assert descent.state_dict(model)["step"] == 5


@pytest.mark.host("the evaluator has no direct calls")
@pytest.mark.parametrize("run", [step, plain_step])
def test_steps_are_direct_from_the_second_on(run: Any, model: Any, general: list[str]) -> None:
    run(model, X)
    general.clear()
    run(model, X)
    run(relay.create_model(layer, seed=1), X)
    assert general == []


def test_a_frozen_parameter_stays(model: Any) -> None:
    trained(model)
    trained(model)
    model.linear_1.weight.requires_grad_(False)
    before = model.linear_1.weight.clone()
    is_as_evaluated(trained, model)
    is_as_evaluated(trained, model)
    torch.testing.assert_close(model.linear_1.weight, before, rtol=0, atol=0)
    model.linear_1.weight.requires_grad_(True)
    is_as_evaluated(trained, model)
    assert not torch.equal(model.linear_1.weight, before)


def test_a_call_that_torch_records_joins_its_graph(model: Any) -> None:
    assert not forward(model).requires_grad
    result = model(X)
    assert result.requires_grad
    result.sum().backward()
    assert model.linear_1.weight.grad is not None
    assert not forward(model).requires_grad


def test_models_stand_among_other_arguments(model: Any) -> None:
    for by in (2.0, 3, torch.tensor(0.5)):
        is_as_evaluated(lambda m, b=by: scaled(m, X, b), model)
    is_as_evaluated(lambda m: scaled(x=X, by=1.5, model=m), model)


def test_another_dtype_is_the_same_mistake_as_at_first(model: Any) -> None:
    with pytest.raises((CheckError, RunError)) as first:
        forward(copy.deepcopy(model).double())
    forward(model)
    with pytest.raises((CheckError, RunError)) as later:
        forward(model.double())
    assert str(first.value) == str(later.value)


def test_no_model_is_the_same_mistake_as_at_first(model: Any) -> None:
    with pytest.raises((CheckError, RunError)) as first:
        step(X, X)
    step(model, X)
    step(model, X)
    with pytest.raises((CheckError, RunError)) as later:
        step(X, X)
    assert str(first.value) == str(later.value)
