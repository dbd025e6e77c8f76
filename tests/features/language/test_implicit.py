"""Implicit parameters: a function takes what it, or a function that it calls, mentions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import pyrelay
from pyrelay import Dim, Float, Fn, Int, Model, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List

N = Dim("N")
temperature = relay.implicit("temperature", Float)
scale = relay.implicit("scale", Float, default=2.0)
key = relay.implicit("key", Tensor[Int, (2,)])


@dataclass(frozen=True)
class Config:
    rate: Float
    name: str

    def doubled(self) -> Float:
        return self.rate * 2.0


config = relay.implicit("config", Config)
X = torch.tensor([1.0, -2.0, 3.0])


@relay
def soften(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.tanh(x / temperature)


@relay
def twice(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return soften(soften(x)) * scale


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return twice(x).sum()


def plain_twice(x: torch.Tensor, t: Any, s: float = 2.0) -> torch.Tensor:
    return torch.tanh(torch.tanh(x / t) / t) * s


def test_a_script_gives_it_by_name() -> None:
    assert torch.allclose(soften(X, temperature=2.0), torch.tanh(X / 2.0))
    assert torch.allclose(twice(X, temperature=2.0), plain_twice(X, 2.0))
    assert torch.allclose(twice(X, temperature=2.0, scale=3.0), plain_twice(X, 2.0, 3.0))
    assert torch.allclose(twice.interpret(X, temperature=2.0), plain_twice(X, 2.0))


def test_the_type_shows_it() -> None:
    assert "temperature: Float" in twice.type
    assert "scale" not in soften.type


@relay
def cold(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return twice(x, temperature=0.5)


@relay
def cooler(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return twice(x, temperature=temperature / 2.0) + soften(x)


def test_a_call_in_a_program_gives_it() -> None:
    assert torch.allclose(cold(X), plain_twice(X, 0.5))
    expected = plain_twice(X, 1.0) + torch.tanh(X / 2.0)
    assert torch.allclose(cooler(X, temperature=2.0), expected)


@relay
def power(n: int, x: Float) -> Float:
    if n == 0:
        return x
    return power(n - 1, x * temperature)


@relay
def even(n: int, x: Float) -> Float:
    return x if n == 0 else odd(n - 1, x)


@relay
def odd(n: int, x: Float) -> Float:
    return x if n == 0 else even(n - 1, x * temperature)


def test_recursion_passes_it_on() -> None:
    assert power(1000, 1.0, temperature=1.0) == 1.0
    assert power(3, 1.0, temperature=2.0) == 8.0
    assert even(6, 1.0, temperature=2.0) == 8.0
    assert relay.grad(power)(3, 1.0, temperature=2.0) == 8.0


@relay
def closures(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    f: Fn[[Tensor[Float, (N,)]], Tensor[Float, (N,)]] = soften

    def g(y):
        return f(y) + temperature

    return g(x) + cold_inside(lambda y: y * temperature, x)


@relay
def cold_inside(
    f: Fn[[Tensor[Float, (N,)]], Tensor[Float, (N,)]], x: Tensor[Float, (N,)]
) -> Tensor[Float, (N,)]:
    return f(soften(x, temperature=0.5))


def test_a_closure_has_the_value_of_where_it_is_written() -> None:
    expected = torch.tanh(X / 2.0) + 2.0 + torch.tanh(X / 0.5) * 2.0
    assert torch.allclose(closures(X, temperature=2.0), expected)


@relay
def mapped(xs: List[Float]) -> List[Float]:
    return [hot(x) for x in xs]


@relay
def hot(x: Float) -> Float:
    return x * temperature


def test_a_comprehension_has_it() -> None:
    assert [float(x) for x in mapped([1.0, 2.0], temperature=3.0)] == [3.0, 6.0]


@relay
def slope(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.grad(total)(x)


@relay
def slope_in_temperature(x: Tensor[Float, (N,)]) -> Float:
    return relay.grad(lambda t: total(x, temperature=t))(2.0)


made = relay.grad(total)


@relay
def slope_by_name(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return made(x, temperature=2.0)


def test_a_gradient_is_in_the_parameters_that_are_written() -> None:
    x, t = X.clone().requires_grad_(), torch.tensor(2.0, requires_grad=True)
    plain_twice(x, t).sum().backward()
    assert x.grad is not None
    assert t.grad is not None
    for gradient in (relay.grad(total), relay.grad(total, wrt="x"), slope):
        assert torch.allclose(gradient(X, temperature=2.0), x.grad)
    assert torch.allclose(slope_by_name(X), x.grad)
    assert torch.allclose(slope_in_temperature(X), t.grad)


def test_torch_differentiates_in_it() -> None:
    t, same = (torch.tensor(2.0, requires_grad=True) for _ in range(2))
    twice(X, temperature=t).sum().backward()
    plain_twice(X, same).sum().backward()
    assert t.grad is not None
    assert same.grad is not None
    assert torch.allclose(t.grad, same.grad)


@relay_model
def part(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2) / temperature


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return part(x) * scale


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def train(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    late = relay.grad(model, loss, (x,), temperature=4.0)
    relay.update_model_params(model, late, lr=0.1)
    return value + model(x).sum() + model.bind(loss)(x)


def plain_net(module: torch.nn.Linear, x: torch.Tensor, t: float) -> torch.Tensor:
    return module(x) / t * 2.0


def test_a_model_takes_it() -> None:
    model, x = relay.create_model(net, seed=0), torch.ones(4, 3)
    module = torch.nn.Linear(3, 2)
    state = {n.removeprefix("part.linear_1."): v for n, v in model.state_dict().items()}
    module.load_state_dict(state)
    assert torch.allclose(model(x, temperature=3.0), plain_net(module, x, 3.0))
    assert torch.allclose(
        model.bind(loss)(x, temperature=3.0), plain_net(module, x, 3.0).pow(2).mean()
    )
    grads = relay.grad(model, loss, (x,), temperature=3.0)
    plain_net(module, x, 3.0).pow(2).mean().backward()
    assert module.weight.grad is not None
    assert torch.allclose(grads["part.linear_1.weight"], module.weight.grad)
    pure = relay.with_params(loss)
    assert torch.allclose(
        pure(model.params, x, temperature=3.0), model.bind(loss)(x, temperature=3.0)
    )
    assert torch.allclose(
        relay.grad(pure)(model.params, x, temperature=3.0)["part.linear_1.weight"],
        module.weight.grad,
    )
    found = train(model, x, temperature=3.0)
    optimizer, value = torch.optim.SGD(module.parameters(), lr=0.1), 0.0
    for t in (3.0, 4.0):
        optimizer.zero_grad()
        current = plain_net(module, x, t).pow(2).mean()
        value = value or current.item()
        current.backward()
        optimizer.step()
    out = plain_net(module, x, 3.0)
    assert torch.allclose(found, value + out.sum() + out.pow(2).mean())


def test_an_exported_model_takes_it(tmp_path: Path) -> None:
    model, x = relay.create_model(net, seed=0), torch.ones(4, 3)
    predict = relay.export_model(model)
    predict.save(tmp_path / "net.relay")
    for exported in (predict, relay.load_model(tmp_path / "net.relay")):
        assert torch.equal(exported(x, temperature=3.0), model(x, temperature=3.0))


@relay
def noisy(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x + relay.random.normal(key, (3,))


@relay
def walks(x: Tensor[Float, (3,)], n: int) -> Tensor[Float, (3,)]:
    for i in range(n):
        x = noisy(x, key=relay.random.fold_in(key, i))
    return x


def test_a_random_key_is_passed_on() -> None:
    one = relay.random.key(1)
    expected = torch.zeros(3)
    for i in range(4):
        expected = noisy(expected, key=relay.random.fold_in(one, i))
    assert torch.equal(walks(torch.zeros(3), 4, key=one), expected)


@relay
def configured(x: Float) -> Float:
    assert config.name == "a"
    return config.rate * x + config.doubled()


def test_data_is_passed_on() -> None:
    assert configured(2.0, config=Config(3.0, "a")) == 12.0


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: soften(X), "needs the implicit `temperature`"),
        (lambda: soften(X, temprature=1.0), "unexpected keyword argument 'temprature'"),
        (lambda: relay.grad(total)(X), "needs the implicit `temperature`"),
    ],
)
def test_a_call_without_it(call: Callable[[], Any], why: str) -> None:
    with pytest.raises(RunError, match=why):
        call()


def test_a_name_is_an_identifier() -> None:
    with pytest.raises(ValueError, match="'a b' is none"):
        pyrelay.relay.implicit("a b", Float)
