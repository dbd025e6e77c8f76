"""Optimisers of `relay.optim`: torch's steps, in scripts and in programs, with one memory."""

from __future__ import annotations

import copy

import pytest
import torch

from pyrelay import Float, Int, Model, Optimizer, RunError, Tensor, float64, relay, relay_model
from tests.features.models.training import (
    OPTIMIZERS,
    N,
    X,
    Y,
    assert_same,
    each_optimizer,
    evaluate,
    loss,
    new_model,
    perceptron,
    script_steps,
    torch_steps,
    train,
)


@each_optimizer
def test_steps_in_a_program_are_torchs_and_those_of_a_script(name: str) -> None:
    inside, outside = new_model(), new_model()
    train(inside, OPTIMIZERS[name][0](), X, Y, 10)
    script_steps(outside, OPTIMIZERS[name][0](), 10)
    reference = torch_steps(name, 10)
    assert not torch.allclose(next(reference.parameters()), next(new_model().parameters()))
    assert_same(inside, reference)
    assert_same(outside, reference)


@each_optimizer
def test_the_reference_evaluator_takes_the_same_steps(name: str) -> None:
    model = new_model()
    train.interpret(model, OPTIMIZERS[name][0](), X, Y, 4)
    assert_same(model, torch_steps(name, 4))


@each_optimizer
def test_script_and_programs_share_one_memory(name: str) -> None:
    model, optimizer = new_model(), OPTIMIZERS[name][0]()
    script_steps(model, optimizer, 2)
    train(model, optimizer, X, Y, 3)
    script_steps(model, optimizer, 1)
    train(model, optimizer, X, Y, 0)
    train(model, optimizer, X, Y, 4)
    assert_same(model, torch_steps(name, 10))
    assert optimizer.state[model].step == 10


def test_double_precision_is_kept() -> None:
    @relay_model
    def net(x: Tensor[float64, (N, 4)]) -> Tensor[float64, (N, 2)]:
        return relay.tanh(relay.linear(x, out_features=2)) * relay.param((), dtype=relay.float64)

    @relay
    def error(x: Tensor[float64, (N, 4)]) -> float64:
        return relay.mean(net(x) * net(x))

    @relay
    def fit(model: Model[net], optimizer: Optimizer, x: Tensor[float64, (N, 4)]) -> float64:
        value = error_of(model, x)
        for _ in range(10):
            value, grads = relay.value_and_grad(model, error, (x,))
            relay.update_model_params(model, grads, optimizer=optimizer)
        return value

    @relay
    def error_of(model: Model[net], x: Tensor[float64, (N, 4)]) -> float64:
        return model.bind(error)(x)

    model = relay.create_model(net)
    other = copy.deepcopy(model)
    fit(model, relay.optim.adamw(0.1), X.double())
    reference = torch.optim.AdamW(other.parameters(), 0.1)
    for _ in range(10):
        grads = relay.grad(other, error, (X.double(),))
        relay.update_model_params(other, grads, optimizer=reference)
    assert_same(model, other, 1e-14)


captured = relay.optim.adam(lr=0.1)


@relay
def first_half(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    def step(count: int) -> Float:
        value, grads = relay.value_and_grad(model, loss, (x, y))
        relay.update_model_params(model, grads, optimizer=captured)
        return value if count == 0 else step(count - 1)

    return step(4)


@relay
def second_half(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
    before = evaluate(model, x, y)
    after = train(model, captured, x, y, 5)
    return before - after


def test_functions_share_a_captured_optimizer() -> None:
    model = new_model()
    first_half(model, X, Y)
    assert second_half(model, X, Y) > 0
    assert_same(model, torch_steps("adam", 10))
    assert captured.state[model].step == 10


def test_a_new_learning_rate_takes_effect_without_a_new_translation() -> None:
    optimizer = relay.optim.adam(lr=0.1)

    @relay
    def fit(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        return train(model, optimizer, x, y, 5)

    model, other = new_model(), new_model()
    fit(model, X, Y)
    optimizer.lr = 0.01
    fit(model, X, Y)
    reference = torch.optim.Adam(other.parameters(), 0.1)
    script_steps(other, reference, 5)
    reference.param_groups[0]["lr"] = 0.01
    script_steps(other, reference, 5)
    assert_same(model, other)
    assert fit.cache_info().misses == 1


def test_other_hyper_parameters_take_effect_too() -> None:
    optimizer = relay.optim.sgd(lr=0.1)

    @relay
    def fit(model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        return train(model, optimizer, x, y, 5)

    model, other = new_model(), new_model()
    fit(model, X, Y)
    optimizer.momentum = 0.9
    fit(model, X, Y)
    script_steps(other, torch.optim.SGD(other.parameters(), 0.1), 5)
    script_steps(other, torch.optim.SGD(other.parameters(), 0.1, 0.9), 5)
    assert_same(model, other)


def test_an_update_may_name_its_own_learning_rate() -> None:
    @relay
    def fit(
        model: Model[perceptron],
        optimizer: Optimizer,
        x: Tensor[Float, (N, 4)],
        y: Tensor[Int, (N,)],
        rate: Float,
    ) -> Float:
        value = 0.0
        for i in range(4):
            value, grads = relay.value_and_grad(model, loss, (x, y))
            relay.update_model_params(model, grads, rate / float(i + 1), optimizer=optimizer)
        grads = relay.grad(model, loss, (x, y))
        relay.update_model_params(model, grads, lr=0.5)
        return value

    model, other = new_model(), new_model()
    fit(model, relay.optim.adam(7.0), X, Y, 0.2)
    optimizer = relay.optim.adam(7.0)
    grads = relay.grad(other, loss, (X, Y))
    for i in range(4):
        grads = relay.grad(other, loss, (X, Y))
        relay.update_model_params(other, grads, 0.2 / (i + 1), optimizer=optimizer)
    relay.update_model_params(other, relay.grad(other, loss, (X, Y)), lr=0.5)
    assert_same(model, other)
    with pytest.raises(RunError, match="not both"):
        relay.update_model_params(
            other, grads, 0.1, optimizer=torch.optim.SGD(other.parameters(), 0.1)
        )


def test_two_models_have_an_optimizer_each_or_share_one() -> None:
    @relay
    def both(
        a: Model[perceptron],
        b: Model[perceptron],
        for_a: Optimizer,
        for_b: Optimizer,
        x: Tensor[Float, (N, 4)],
        y: Tensor[Int, (N,)],
    ) -> Float:
        difference = 0.0
        for _ in range(10):
            train(a, for_a, x, y, 1)
            train(b, for_b, x, y, 1)
            difference = evaluate(a, x, y) - evaluate(b, x, y)
        return difference

    a, b = new_model(), new_model()
    both(a, b, relay.optim.adam(0.1), relay.optim.sgd(0.1, 0.9), X, Y)
    assert_same(a, torch_steps("adam", 10))
    assert_same(b, torch_steps("momentum", 10))
    a, b, shared = new_model(), new_model(), relay.optim.adam(0.1)
    both(a, b, shared, shared, X, Y)
    assert_same(a, torch_steps("adam", 10))
    assert_same(b, torch_steps("adam", 10))


def test_two_optimizers_are_named_in_one_assignment() -> None:
    @relay
    def both(
        a: Model[perceptron],
        b: Model[perceptron],
        x: Tensor[Float, (N, 4)],
        y: Tensor[Int, (N,)],
    ):
        first, rate, second = relay.optim.adam(0.1), 0.1, relay.optim.sgd(0.1, 0.9)
        for _ in range(10):
            relay.update_model_params(a, relay.grad(a, loss, (x, y)), optimizer=first)
            relay.update_model_params(b, relay.grad(b, loss, (x, y)), optimizer=second)
        return rate

    a, b = new_model(), new_model()
    both(a, b, X, Y)
    assert_same(a, torch_steps("adam", 10))
    assert_same(b, torch_steps("momentum", 10))


def test_a_program_makes_model_and_optimizer_and_exports() -> None:
    @relay
    def fit(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)], steps: Int):
        model = relay.create_model(perceptron, seed=0)
        optimizer = relay.optim.adam(lr=0.1)
        for _ in range(steps):
            grads = relay.grad(model, loss, (x, y))
            relay.update_model_params(model, grads, optimizer=optimizer)
        return relay.export_model(model)

    expected = torch_steps("adam", 10)(X)
    assert torch.allclose(fit(X, Y, 10)(X), expected, atol=1e-5)
    assert torch.allclose(fit(X, Y, 10)(X), expected, atol=1e-5)


def test_a_model_that_a_program_makes_starts_with_the_learning_rate_of_the_day() -> None:
    @relay
    def fit(optimizer: Optimizer, x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]):
        model = relay.create_model(perceptron, seed=0)
        train(model, optimizer, x, y, 5)
        return relay.export_model(model)

    @relay
    def fit_captured(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]):
        return fit(optimizer, x, y)

    optimizer = relay.optim.adam(0.1)
    for lr in (0.1, 0.02, 0.1):
        optimizer.lr = lr
        model = new_model()
        script_steps(model, relay.optim.adam(lr), 5)
        assert torch.allclose(fit(optimizer, X, Y)(X), model(X), atol=1e-5)
        assert torch.allclose(fit_captured(X, Y)(X), model(X), atol=1e-5)


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_optimizer_made_in_a_program_remembers_nothing_older(rounds: int) -> None:
    @relay
    def fit(
        model: Model[perceptron], x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)], rounds: Int
    ) -> Float:
        value = 0.0
        for _ in range(rounds):
            optimizer = relay.optim.sgd(0.1, momentum=0.9)
            value = train(model, optimizer, x, y, 4)
        return value

    model, other = new_model(), new_model()
    fit(model, X, Y, rounds)
    fit(model, X, Y, rounds)
    for _ in range(2 * rounds):
        script_steps(other, torch.optim.SGD(other.parameters(), 0.1, 0.9), 4)
    assert_same(model, other)


def test_an_interrupted_loop_leaves_parameters_and_memory_of_the_last_whole_update() -> None:
    @relay
    def broken(
        model: Model[perceptron],
        optimizer: Optimizer,
        x: Tensor[Float, (N, 4)],
        y: Tensor[Int, (N,)],
    ) -> Float:
        value = 0.0
        for i in range(10):
            assert i < 6, "stop here"
            value, grads = relay.value_and_grad(model, loss, (x, y))
            relay.update_model_params(model, grads, optimizer=optimizer)
        return value

    model, optimizer = new_model(), relay.optim.adam(0.1)
    with pytest.raises(RunError, match="stop here"):
        broken(model, optimizer, X, Y)
    assert optimizer.state[model].step == 6
    script_steps(model, optimizer, 4)
    assert_same(model, torch_steps("adam", 10))


def test_a_name_for_one_of_two_models_updates_that_one() -> None:
    @relay
    def fit(
        a: Model[perceptron],
        b: Model[perceptron],
        optimizer: Optimizer,
        x: Tensor[Float, (N, 4)],
        y: Tensor[Int, (N,)],
        first: bool,
    ) -> Float:
        chosen = a
        if not first:
            chosen = b
        train(a, optimizer, x, y, 1)
        return train(chosen, optimizer, x, y, 5)

    a, b, optimizer = new_model(), new_model(), relay.optim.adam(0.1)
    fit(a, b, optimizer, X, Y, False)
    assert_same(a, torch_steps("adam", 1))
    assert_same(b, torch_steps("adam", 5))
    fit(a, b, optimizer, X, Y, True)
    assert_same(a, torch_steps("adam", 7))
    assert_same(b, torch_steps("adam", 5))


def test_models_in_models_and_state_go_along() -> None:
    @relay_model
    def block(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        return relay.tanh(relay.batch_norm(relay.linear(x, out_features=4)))

    @relay_model
    def deep(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 3)]:
        for _ in relay.layers(3):
            x = block(x)
        return relay.linear(x, out_features=3)

    @relay
    def objective(x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]) -> Float:
        return relay.softmax_cross_entropy(deep(x), y)

    @relay
    def fit(
        model: Model[deep], optimizer: Optimizer, x: Tensor[Float, (N, 4)], y: Tensor[Int, (N,)]
    ) -> Float:
        value = 0.0
        for _ in range(5):
            value, grads = relay.value_and_grad(model, objective, (x, y))
            relay.update_model_params(model, grads, optimizer=optimizer)
        return value

    model = relay.create_model(deep)
    other = copy.deepcopy(model)
    fit(model, relay.optim.sgd(0.05, 0.9), X, Y)
    reference = torch.optim.SGD(other.parameters(), 0.05, 0.9)
    for _ in range(5):
        grads = relay.grad(other, objective, (X, Y))
        relay.update_model_params(other, grads, optimizer=reference)
    assert_same(model, other, 1e-5)
    for name, value in model.state_dict().items():
        assert torch.allclose(value, other.state_dict()[name], atol=1e-5), name


def test_a_script_says_how_to_update_as_a_program_does() -> None:
    model = new_model()
    gradient = relay.grad(model, loss, (X, Y))
    with pytest.raises(RunError, match="takes `lr` or an optimiser, not gradients alone"):
        relay.update_model_params(model, gradient)
    assert_same(model, new_model())
