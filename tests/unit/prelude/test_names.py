"""Names of the prelude in decorated functions: by identity, with functions of every kind."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, prelude, relay, relay_model
from pyrelay.prelude import Cons, Nil, foldl, hd, nth, tl

N = Dim("N")


@relay
def twice(x: Float) -> Float:
    return x + x


@relay
def every_kind_of_function(x: Float) -> Float:
    def shift(y: Float):
        return y - x

    xs = Cons(x, Cons(2.0, Cons(3.0, Nil())))
    ys = prelude.map(relay.tanh, relay.map(twice, relay.map(shift, xs)))
    return foldl(lambda a, b: a * 0.5 + b, 0.0, ys)


def test_operators_functions_and_lambdas_are_arguments() -> None:
    x = torch.tensor(0.3)
    ys = [torch.tanh(2 * (y - x)) for y in (x, torch.tensor(2.0), torch.tensor(3.0))]
    wanted = (ys[0] * 0.5 + ys[1]) * 0.5 + ys[2]
    torch.testing.assert_close(every_kind_of_function(x), wanted)
    torch.testing.assert_close(every_kind_of_function.interpret(x), wanted)


def test_gradients_go_through_maps_and_folds() -> None:
    x = torch.tensor(0.3, requires_grad=True)
    ys = [torch.tanh(2 * (y - x)) for y in (x, torch.tensor(2.0), torch.tensor(3.0))]
    ((ys[0] * 0.5 + ys[1]) * 0.5 + ys[2]).backward()
    torch.testing.assert_close(relay.grad(every_kind_of_function)(x.detach()), x.grad)


@relay_model
def cell(h: Tensor[Float, (3,)], x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return relay.tanh(relay.linear(h + x, out_features=3))


@relay_model
def encode(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return relay.foldl(cell, relay.zeros(3), Cons(x, Cons(2 * x, Nil())))


def test_a_model_as_a_value_is_a_site() -> None:
    model = relay.create_model(encode)
    assert sorted(model.state_dict()) == ["cell.linear_1.bias", "cell.linear_1.weight"]
    weight, bias = (
        model.state_dict()["cell.linear_1.weight"],
        model.state_dict()["cell.linear_1.bias"],
    )
    x = torch.tensor([0.1, -0.2, 0.3])
    h = torch.tanh(weight @ x + bias)
    torch.testing.assert_close(model(x), torch.tanh(weight @ (h + 2 * x) + bias))


@relay
def third(n: Int) -> Int:
    return nth(Cons(1, Cons(2, Nil())), n)


@relay
def parts(n: Int) -> Int:
    xs = Cons(1, Cons(2, Nil()))
    return hd(tl(tl(xs))) if n > 0 else hd(xs)


@pytest.mark.parametrize(
    ("function", "where", "code"),
    [(third, "nth(Cons(1, Cons(2, Nil())), n)", "RL502"), (parts, "hd(tl(tl(xs)))", "RL509")],
)
def test_a_missing_element_is_the_callers_mistake(function: Any, where: str, code: str) -> None:
    for run in (function, function.interpret):
        with pytest.raises(RunError) as caught:
            run(2)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == code
        assert diagnostic.primary is not None
        assert diagnostic.primary.span.text == where


def test_indices_count_from_the_end_too() -> None:
    assert int(third(-1)) == 2
    assert int(third(-2)) == 1
    assert int(parts(0)) == 1


def test_calls_are_checked() -> None:
    @relay
    def wrong(x: Float) -> Float:
        return foldl(lambda a, b: a, x)

    with pytest.raises(CheckError, match="misses its argument `xs`"):
        wrong.check()


def test_those_without_an_operator_of_the_name_are_members_of_relay() -> None:
    assert relay.foldl is prelude.foldl
    assert relay.Cons is prelude.Cons
    assert relay.sum is not prelude.sum
