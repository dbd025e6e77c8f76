"""Models that are passed for parameters: as function values, and as what gradients are taken in."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, Model, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List, foldl, map  # noqa: A004  the list's own

X = torch.tensor([0.5, -1.0, 2.0])
XS = [X, X * 2.0, X - 1.0]


@relay_model
def cell(h: Tensor[Float, (3,)], x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return relay.tanh(relay.linear(relay.cat((h, x)), out_features=3))


@relay_model
def one(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return relay.linear(x, out_features=3)


@relay_model
def two(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return 2.0 * relay.linear(x, out_features=3)


def test_a_model_folds_and_maps_over_a_list() -> None:
    @relay
    def folded(c: Model[cell], xs: List[Tensor[Float, (3,)]]) -> Tensor[Float, (3,)]:
        return foldl(c, relay.zeros((3,)), xs)

    @relay
    def mapped(m: Model[one], xs: List[Tensor[Float, (3,)]]):
        return relay.stack(map(m, xs))

    c, m = relay.create_model(cell, seed=1), relay.create_model(one, seed=2)
    state = torch.zeros(3)
    for x in XS:
        state = c(state, x)
    torch.testing.assert_close(folded(c, XS), state.detach())
    torch.testing.assert_close(mapped(m, XS), torch.stack([m(x).detach() for x in XS]))


def test_a_model_is_chosen_and_passed_to_a_local_function() -> None:
    @relay
    def chosen(a: Model[one], b: Model[two], p: bool, x: Tensor[Float, (3,)]):
        def twice(f, y):
            return f(f(y))

        g = a if p else b
        return (a if p else b)(x), twice(a, x), g(x)

    a, b = relay.create_model(one, seed=1), relay.create_model(two, seed=2)
    for p in (True, False):
        found = chosen(a, b, p, X)
        expected = (a(X) if p else b(X)).detach()
        torch.testing.assert_close(found, (expected, a(a(X)).detach(), expected))


def test_a_model_as_a_value_reads_its_parameters_when_it_is_called() -> None:
    @relay
    def moved(m: Model[one], x: Tensor[Float, (3,)]):
        f = (m, 1.0)
        grads = relay.grad(m, total, (x,))
        relay.update_model_params(m, grads, lr=1.0)
        return f[0](x)

    m = relay.create_model(one, seed=1)
    found = moved(m, X)
    torch.testing.assert_close(found, m(X).detach())


@relay
def total(x: Tensor[Float, (3,)]) -> Float:
    return one(x).sum()


@relay
def of_both(x: Tensor[Float, (3,)]) -> Float:
    return one(x).sum() * 3.0 + two(x).sum()


@relay
def of_passed(m: Model[one], x: Tensor[Float, (3,)]) -> Float:
    return (m(x) * 3.0).sum()


@relay
def of_all(x: Tensor[Float, (3,)], m: Model[one], n: Model[two]) -> Float:
    return (m(x) * 3.0).sum() + one(x).sum() + n(x).sum() * 5.0


@relay
def of_two(m: Model[one], n: Model[one], x: Tensor[Float, (3,)]) -> Float:
    return m(x).sum() + 7.0 * n(x).sum()


def bias(grads: Any) -> float:
    """Return the gradient of the bias, which is one number for these losses."""
    found = grads["linear_1.bias"]
    assert torch.equal(found, found[0].expand(3))
    return float(found[0])


def test_the_gradient_in_several_models_does_not_depend_on_their_order() -> None:
    a, b = relay.create_model(one, seed=1), relay.create_model(two, seed=2)
    assert [bias(g) for g in relay.grad((a, b), of_both, (X,))] == [3.0, 2.0]
    assert [bias(g) for g in relay.grad((b, a), of_both, (X,))] == [2.0, 3.0]
    (value, found), expected = relay.value_and_grad((b, a), of_both, (X,)), of_both_at(a, b)
    assert [bias(g) for g in found] == [2.0, 3.0]
    torch.testing.assert_close(value, expected)


def of_both_at(a: Any, b: Any) -> torch.Tensor:
    return (a(X).sum() * 3.0 + b(X).sum()).detach()


def test_a_script_differentiates_in_a_model_that_the_loss_is_passed() -> None:
    a, b = relay.create_model(one, seed=1), relay.create_model(two, seed=2)
    other = relay.create_model(one, seed=3)
    assert bias(relay.grad(a, of_passed, (a, X))) == 3.0
    assert [bias(g) for g in relay.grad((b, a), of_all, (X, a, b))] == [10.0, 4.0]
    assert [bias(g) for g in relay.grad((a, other), of_two, (other, a, X))] == [7.0, 1.0]
    assert bias(relay.grad(a, of_two, (a, a, X))) == 8.0
    with pytest.raises(RunError):
        relay.grad(other, of_passed, (a, X))


def test_a_program_differentiates_in_a_model_that_the_loss_is_passed() -> None:
    @relay
    def passed(m: Model[one], n: Model[two], x: Tensor[Float, (3,)]):
        first = relay.grad(m, of_passed, (m, x))
        second, third = relay.grad((n, m), of_all, (x, m, n))
        return first, second, third

    a, b = relay.create_model(one, seed=1), relay.create_model(two, seed=2)
    found = passed(a, b, X)
    assert [float(grads[1][0]) for grads in found] == [3.0, 10.0, 4.0]


def test_a_program_differentiates_in_a_model_that_the_loss_captures() -> None:
    @relay
    def captured(m: Model[one], x: Tensor[Float, (3,)]):
        def loss(y):
            return (m(y) * 3.0).sum() + one(y).sum()

        return relay.grad(m, loss, (x,)), relay.grad(m, lambda y: m(y).sum(), (x,))

    found = captured(relay.create_model(one, seed=1), X)
    assert [float(grads[1][0]) for grads in found] == [4.0, 1.0]


def test_a_loss_that_reaches_no_parameter_is_refused_instead_of_a_zero_gradient() -> None:
    @relay
    def hidden(m: Model[one], x: Tensor[Float, (3,)]):
        def inside(y):
            return m(y).sum()

        return relay.grad(m, lambda y: inside(y) * 2.0, (x,))

    with pytest.raises(CheckError) as caught:
        hidden(relay.create_model(one), X)
    assert caught.value.codes == ("RL121",)


@relay
def square(x: Tensor[Float, (3,)]) -> Float:
    return (one(x) ** 2).sum()


@relay
def adapted(m: Model[one], x: Tensor[Float, (3,)]) -> Float:
    pure = relay.with_params(square)
    params = relay.sgd(m.params, relay.grad(pure)(m.params, x), 0.01)
    return pure(params, x)


def by_torch(model: Any) -> list[torch.Tensor]:
    """Return the gradient of the loss after an inner step, by torch."""
    params = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def loss(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.linear(X, weight, bias) ** 2).sum()

    grads = torch.autograd.grad(loss(*params), params, create_graph=True)
    moved = [p - 0.01 * g for p, g in zip(params, grads, strict=True)]
    return list(torch.autograd.grad(loss(*moved), params))


def test_a_meta_step_is_that_of_torch_in_a_script_and_in_a_program() -> None:
    @relay
    def meta(m: Model[one], x: Tensor[Float, (3,)]) -> Float:
        value, grads = relay.value_and_grad(m, adapted, (m, x))
        relay.update_model_params(m, grads, lr=0.1)
        return value

    models = [relay.create_model(one, seed=1) for _ in range(2)]
    expected = by_torch(models[0])
    value, grads = relay.value_and_grad(models[0], adapted, (models[0], X))
    for name, wanted in zip(grads, expected, strict=True):
        torch.testing.assert_close(grads[name], wanted)
    relay.update_model_params(models[0], grads, lr=0.1)
    torch.testing.assert_close(meta(models[1], X), value)
    for ours, theirs in zip(models[1].parameters(), models[0].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_an_optimiser_that_updates_the_model_differentiated_is_refused() -> None:
    optimizer = relay.optim.adam()

    @relay
    def moving(m: Model[one], x: Tensor[Float, (3,)]) -> Float:
        relay.update_model_params(m, relay.grad(m, total, (x,)), optimizer=optimizer)
        return m(x).sum()

    m = relay.create_model(one)
    with pytest.raises(CheckError, match=r"relay\.with_params"):
        relay.grad(m, moving, (m, X))
