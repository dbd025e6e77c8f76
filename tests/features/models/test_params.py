"""`Params[net]`: records of parameters as arguments and results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Model, Params, RunError, Tensor, relay, relay_model

N = Dim("N")
X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


@relay_model
def net(x: Tensor[Float, (N, 3)], *, width: int = 4) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=width)), out_features=2)


@relay_model
def other(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return (net(x) ** 2).mean()


@relay
def adapted(params: Params[net], x: Tensor[Float, (N, 3)]) -> Params[net]:
    pure = relay.with_params(loss)
    return relay.sgd(params, relay.grad(pure)(params, x), 0.1)


@relay
def outer(params: Params[net], x: Tensor[Float, (N, 3)]) -> Float:
    return relay.with_params(loss)(adapted(params, x), x)


def expected(model: Any) -> torch.Tensor:
    """Return the loss after an inner step, made by the script."""
    pure = relay.with_params(loss)
    return pure(relay.sgd(model.params, relay.grad(pure)(model.params, X), 0.1), X).detach()


def test_a_function_takes_and_gives_parameters() -> None:
    model = relay.create_model(net, seed=1)
    moved = adapted(model.params, X)
    assert sorted(moved) == sorted(model.params)
    pure = relay.with_params(loss)
    torch.testing.assert_close(pure(moved, X), expected(model))
    torch.testing.assert_close(outer(model.params, X).detach(), expected(model))


def test_a_program_passes_its_models_parameters() -> None:
    @relay
    def meta(model: Model[net], x: Tensor[Float, (N, 3)]):
        value, grads = relay.value_and_grad(outer, wrt="params")(model.params, x)
        return value, grads

    model = relay.create_model(net, seed=1)
    value, grads = meta(model, X)
    torch.testing.assert_close(value, expected(model))
    before = outer(model.params, X).detach()
    relay.update_model_params(model, grads, lr=0.1)
    assert outer(model.params, X) < before


def test_the_gradient_in_parameters_updates_the_model() -> None:
    model = relay.create_model(net, seed=1)
    before = outer(model.params, X).detach()
    grads = relay.grad(outer, wrt="params")(model.params, X)
    relay.update_model_params(model, grads, optimizer=relay.optim.sgd(0.1))
    assert outer(model.params, X) < before


def test_static_arguments_of_the_model_come_with_its_parameters() -> None:
    @relay
    def size(params: Params[net]) -> Float:
        return params.norm()

    wide = relay.create_model(net, seed=1, width=9)
    torch.testing.assert_close(size(wide.params).detach(), wide.params.norm())


@relay
def both(p: Params[net], q: Params[other], x: Tensor[Float, (N, 3)]) -> Float:
    return relay.with_params(loss)(p, x) * relay.with_params(other)(q, x).sum()


@relay
def stepped(
    params: Params[net], x: Tensor[Float, (N, 3)]
) -> tuple[Float, Params[net], tuple[int, Params[net]]]:
    value, grads = relay.value_and_grad(outer, wrt="params")(params, x)
    return value, relay.sgd(params, grads, 0.1), (3, params)


def test_the_gradient_in_parameters_is_a_record_like_that_of_a_model() -> None:
    model = relay.create_model(net, seed=1)

    @relay
    def plain(params: Params[net], x: Tensor[Float, (N, 3)]) -> Float:
        return relay.with_params(loss)(params, x)

    value, grads = relay.value_and_grad(plain, wrt="params")(model.params, X)
    wanted_value, wanted = relay.value_and_grad(model, loss, (X,))
    assert type(grads) is type(wanted)
    torch.testing.assert_close(value.detach(), wanted_value)
    torch.testing.assert_close((2 * grads).norm(), (2 * wanted).norm())
    for name in wanted:
        torch.testing.assert_close(grads[name].detach(), wanted[name])


def test_gradients_in_several_arguments_are_records_of_their_own_models() -> None:
    first, second = relay.create_model(net, seed=1), relay.create_model(other, seed=2)
    p, q, x = relay.grad(both, wrt=("p", "q", "x"))(first.params, second.params, X)
    assert sorted(p) == sorted(first.params)
    assert sorted(q) == sorted(second.params)
    assert x.shape == X.shape


def test_a_pullback_gives_the_gradient_in_parameters_as_a_record() -> None:
    model = relay.create_model(net, seed=1)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    value, pullback = relay.vjp(outer, wrt="params")(model.params, X)
    expected = relay.grad(outer, wrt="params")(model.params, X)
    torch.testing.assert_close(pullback(torch.ones_like(value)).norm(), expected.norm())


def test_parameters_in_tuples_that_a_function_gives_are_records() -> None:
    model = relay.create_model(net, seed=1)
    for value, moved, (number, same) in (
        stepped(model.params, X),
        stepped.interpret(model.params, X),
    ):
        grads = relay.grad(outer, wrt="params")(model.params, X)
        expected = relay.sgd(model.params, grads, 0.1)
        torch.testing.assert_close(value.detach(), outer(model.params, X).detach())
        torch.testing.assert_close((moved - expected).norm(), torch.tensor(0.0))
        torch.testing.assert_close((same - model.params).norm(), torch.tensor(0.0))
        assert number == 3


def test_parameters_beside_a_loss_are_records() -> None:
    @relay
    def with_moved(params: Params[net], x: Tensor[Float, (N, 3)]) -> tuple[Float, Params[net]]:
        return outer(params, x), adapted(params, x)

    model = relay.create_model(net, seed=1)
    grads, moved = relay.grad(with_moved, wrt="params", has_aux=True)(model.params, X)
    assert sorted(grads) == sorted(moved) == sorted(model.params)
    torch.testing.assert_close((moved - adapted(model.params, X)).norm(), torch.tensor(0.0))


def test_parameters_that_a_function_gives_stay_a_record_in_its_caller() -> None:
    @relay
    def descended(
        params: Params[net], x: Tensor[Float, (N, 3)]
    ) -> tuple[Params[net], Params[net], Float]:
        before = params
        for _ in range(2):
            _, params, _ = stepped(params, x)
        once = adapted(before, x)
        return params, 2.0 * once - once, params.norm()

    model = relay.create_model(net, seed=1)
    last, once, norm = descended(model.params, X)
    _, expected, _ = stepped(stepped(model.params, X)[1], X)
    torch.testing.assert_close((last - expected).norm(), torch.tensor(0.0))
    torch.testing.assert_close(norm.detach(), last.norm())
    torch.testing.assert_close((once - adapted(model.params, X)).norm(), torch.tensor(0.0))


def test_parameters_come_back_from_a_function_without_annotation() -> None:
    @relay
    def beside(params: Params[net], x: Tensor[Float, (N, 3)]):
        same = params
        return outer(params, x), same

    @relay
    def alone(params: Params[net]):
        return params

    model = relay.create_model(net, seed=1)
    for found in (beside(model.params, X)[1], alone(model.params)):
        torch.testing.assert_close((found - model.params).norm(), torch.tensor(0.0))


def test_records_stand_in_no_parts_but_those_of_tuples() -> None:
    @relay
    def listed(params: Params[net]) -> list[Params[net]]:
        return [params]

    with pytest.raises(CheckError, match="a field of a tuple in a result"):
        listed.check()


def test_other_values_are_refused_by_name() -> None:
    model, wrong = relay.create_model(net), relay.create_model(other)
    with pytest.raises(RunError, match=r"Params\[net\]"):
        outer(wrong.params, X)
    with pytest.raises(RunError, match=r"model\.params"):
        outer(model, X)
    with pytest.raises(RunError, match="2 tensors for 4 parameters"):
        relay.update_model_params(model, (X, X), lr=0.1)


def test_a_pullback_of_parameters_that_require_a_gradient() -> None:
    rows = Dim("Rows")

    @relay_model
    def layer(x: Tensor[Float, (rows, 3)]) -> Tensor[Float, (rows, 2)]:
        return relay.linear(x, out_features=2)

    @relay
    def squares(params: Params[layer], x: Tensor[Float, (rows, 3)]) -> Float:
        return relay.sum(relay.with_params(layer)(params, x) ** 2)

    model, x = relay.create_model(layer, seed=0), torch.randn(4, 3, requires_grad=True)
    value, pullback = relay.vjp(squares)(model.params, x)
    torch.testing.assert_close(value, (model(x) ** 2).sum().detach())
    _, to_x = pullback(torch.tensor(2.0))
    (wanted,) = torch.autograd.grad((model(x) ** 2).sum() * 2, [x])
    torch.testing.assert_close(to_x, wanted)


@relay
def inner_loop(params: Params[net], x: Tensor[Float, (N, 3)], steps: int) -> Float:
    pure = relay.with_params(loss)
    moved = params
    for _ in range(steps):
        gradient = relay.grad(pure)(moved, x)
        moved = moved - gradient * 0.1
    return pure(moved, x)


@relay
def meta_step(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    def after_two(params: Params[net]):
        pure = relay.with_params(loss)
        _, gradient = relay.value_and_grad(pure)(params, x)
        params -= 0.1 * gradient
        return pure(params - relay.grad(pure)(params, x) * 0.1, x)

    value, gradient = relay.value_and_grad(after_two)(model.params)
    direction = gradient * (1.0 / gradient.norm())
    named = relay.grad(inner_loop, wrt="params")(model.params, x, 2)
    relay.update_model_params(model, direction + named - gradient, lr=0.1)
    return value


def test_the_gradient_of_a_function_of_parameters_has_their_arithmetic() -> None:
    model, pure = relay.create_model(net, seed=1), relay.with_params(loss)
    moved = model.params
    for _ in range(2):
        moved = relay.sgd(moved, relay.grad(pure)(moved, X), 0.1)
    wanted = pure(moved, X).detach()
    torch.testing.assert_close(inner_loop(model.params, X, 2), wanted)
    start, gradient = model.params * 1.0, relay.grad(inner_loop, wrt="params")(model.params, X, 2)
    torch.testing.assert_close(meta_step(model, X), wanted)
    for name, tensor in (start - gradient * (0.1 / gradient.norm())).items():
        torch.testing.assert_close(model.state_dict()[name], tensor)
