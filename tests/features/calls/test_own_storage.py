"""Results are in storage of their own: what a script writes to them changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Bool, Float, Int, Model, Tensor, options, relay, relay_model
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.text.json import from_json, to_json

TABLE = relay.const(torch.tensor([1.0, 2.0, 3.0]))


@pytest.fixture(params=["evaluator", "torch", "c"], autouse=True)
def _lowering(request: pytest.FixtureRequest) -> Iterator[None]:
    with options(lowering=request.param):
        yield


@dataclass(frozen=True)
class Row:
    values: Tensor[Float, (3,)]


@relay
def parts(x: Tensor[Float, (3,)]):
    return TABLE[:2], relay.reshape(TABLE, (3, 1)), [TABLE, x], Row(TABLE)


@relay_model
def weights(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return relay.param((3,), name="v")


@relay
def loss(x: Tensor[Float, (3,)]) -> Float:
    return (weights(x) * x).sum()


@relay
def around(m: Model[weights], x: Tensor[Float, (3,)]):
    before = m(x)
    grads = relay.grad(m, loss, (x,))
    relay.update_model_params(m, grads, lr=1.0)
    return before, [before], before[1:], m(x)


@relay
def only_before(m: Model[weights], x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    before = m(x)
    relay.update_model_params(m, relay.grad(m, loss, (x,)), lr=1.0)
    return before


@relay
def around_all(models: list[Model[weights]], x: Tensor[Float, (3,)]):
    before = [m(x) for m in models]
    grads = relay.grad(models, lambda x: sum((m(x) * x).sum() for m in models), (x,))
    relay.update_model_params(models, grads, lr=1.0)
    return before, [m(x) for m in models]


@relay
def with_pullback(x: Tensor[Float, (3,)], p: Bool):
    y = relay.exp(x)

    def times(g: Tensor[Float, (3,)]):
        return g * y

    def over(g: Tensor[Float, (3,)]):
        return g / y

    if p:
        return Row(y), [y], y, times
    return Row(y), [y], y, over


@relay
def powers(x: Tensor[Float, (3,)], n: Int) -> Tensor[Float, (3,)]:
    return relay.exp(x) if n == 0 else powers(x, n - 1)


def tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    inside = [result.values] if isinstance(result, Row) else list(result)
    return [t for part in inside for t in tensors(part)]


def test_a_part_of_a_captured_tensor_may_be_written_to() -> None:
    x = torch.zeros(3)
    expected = [t.clone() for t in tensors(parts(x))]
    for _ in range(2):
        for t in tensors(parts(x)):
            t.fill_(9.0)
    assert all(map(torch.equal, tensors(parts(x)), expected))


@pytest.mark.parametrize("function", [around, only_before])
def test_a_parameter_that_is_returned_is_that_of_the_moment(function: Any) -> None:
    x, model = torch.ones(3), relay.create_model(weights, seed=0)
    for call in (function, function, function, function.interpret):
        before = model.v.detach().clone()
        found = tensors(call(model, x))
        expected = [before, before, before[1:], before - 1.0][: len(found)]
        assert all(map(torch.allclose, found, expected))
        for t in found:
            t.fill_(9.0)
        assert torch.allclose(model.v, before - 1.0)


def test_parameters_of_a_list_of_models_are_those_of_the_moment() -> None:
    x, models = torch.ones(3), [relay.create_model(weights, seed=seed) for seed in range(2)]
    for _ in range(3):
        before = [m.v.detach().clone() for m in models]
        found = tensors(around_all(models, x))
        assert all(map(torch.allclose, found, [*before, *(w - 1.0 for w in before)]))
        assert not any(t.requires_grad for t in found)
        for t in found:
            t.fill_(9.0)
        assert all(torch.allclose(m.v, w - 1.0) for m, w in zip(models, before, strict=True))


def test_a_program_that_updates_a_list_of_models_is_written_as_json() -> None:
    module = around_all.module
    again = from_json(to_json(module))
    assert isinstance(again, Module)
    assert alpha_equal(again, module)


@pytest.mark.parametrize("p", [True, False])
def test_a_function_beside_results_keeps_what_it_captured(p: bool) -> None:
    x, g = torch.tensor([0.5, 1.0, -1.0]), torch.ones(3)
    for call in (with_pullback, with_pullback, with_pullback.interpret):
        *found, pull = call(x, p)
        for t in tensors(found):
            t.fill_(9.0)
        torch.testing.assert_close(pull(g), x.exp() if p else (-x).exp())


def test_a_pullback_of_what_calls_itself_keeps_what_it_needs() -> None:
    x = torch.tensor([0.5, 1.0, -1.0])
    value, pull = relay.vjp(powers, wrt="x")(x, 2)
    value.fill_(9.0)
    torch.testing.assert_close(pull(torch.ones(3)), x.exp())
