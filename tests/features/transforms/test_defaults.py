"""Defaults of functions are those of what transforms make of them, in scripts and in programs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay
def scaled(x: Float, factor: Float = 3.0) -> Float:
    return x * x * factor


@relay
def slope(x: Float) -> Float:
    return relay.grad(scaled, wrt="x")(x)


@relay
def both_slopes(x: Float) -> tuple[Float, Float]:
    return relay.grad(scaled)(x)


@relay
def value_and_slope(x: Float) -> tuple[Float, Float]:
    return relay.value_and_grad(scaled, wrt="x")(x)


@relay
def of_a_local_function(x: Float) -> Float:
    def cube(y: Float, factor: Float = 5.0) -> Float:
        return y * y * y * factor

    return relay.grad(cube, wrt="y")(x)


@relay
def recomputed(x: Float) -> Float:
    return relay.grad(lambda y: relay.checkpoint(scaled)(y))(x)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (slope, (12.0,)),
        (both_slopes, (12.0, 4.0)),
        (value_and_slope, (12.0, 12.0)),
        (of_a_local_function, (60.0,)),
        (recomputed, (12.0,)),
    ],
)
def test_transforms_take_the_defaults_of_functions(function: Any, expected: Any) -> None:
    for found in (function(2.0), function.interpret(2.0)):
        values = found if isinstance(found, tuple) else (found,)
        assert tuple(map(float, values)) == expected


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)], factor: Float = 2.0) -> Float:
    return (net(x) ** 2).mean() * factor


@relay
def step(m: Model[net], x: Tensor[Float, (N, 4)]) -> tuple[Float, Float]:
    value, grads = relay.value_and_grad(m, loss, (x,))
    other, _ = relay.value_and_grad(m, loss, (x, 4.0))
    relay.update_model_params(m, grads, lr=0.1)
    return value, other


@relay
def at_parameters(m: Model[net], x: Tensor[Float, (N, 4)]) -> tuple[Float, Float]:
    pure = relay.with_params(loss)
    return pure(m.params, x), relay.with_params(loss)(m.params, x, 4.0)


def test_a_step_takes_the_defaults_of_the_loss() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.randn(3, 4)
    expected = (model(x) ** 2).mean().detach() * torch.tensor([2.0, 4.0])
    torch.testing.assert_close(torch.stack(at_parameters(model, x)), expected)
    torch.testing.assert_close(torch.stack(step(model, x)), expected)


@relay
def directional(x: Float) -> tuple[Float, Float]:
    return relay.jvp(scaled, wrt="x")((x,), (1.0,))


@relay
def curvature(x: Float) -> Float:
    return relay.hvp(scaled, wrt="x")((x,), (1.0,))


@relay
def each(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(scaled)(xs)


@relay
def each_along(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(scaled, in_axes=(0, None))(xs)


def test_what_is_left_out_does_not_move_in_forward_mode() -> None:
    two = torch.tensor(2.0)
    in_script = relay.jvp(scaled)((two,), (torch.tensor(1.0),))
    for found in (directional(2.0), directional.interpret(2.0), in_script):
        assert tuple(map(float, found)) == (12.0, 12.0)
    moved = relay.jvp(scaled, wrt=("x", "factor"))((two,), (torch.tensor(1.0), torch.tensor(10.0)))
    assert tuple(map(float, moved)) == (12.0, 52.0)
    product = relay.hvp(scaled, wrt="x")
    for value in (curvature(2.0), product((two,), (torch.tensor(1.0),))):
        assert float(value) == 6.0
    assert float(product((two, 4.0), (torch.tensor(1.0),))) == 8.0


def test_what_is_left_out_is_the_same_for_all_elements_of_a_batch() -> None:
    xs = torch.tensor([1.0, 2.0])
    mapped = relay.vmap(scaled)
    expected = torch.tensor([3.0, 12.0])
    for found in (mapped(xs), each(xs), each_along(xs), each.interpret(xs), mapped.interpret(xs)):
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(relay.vmap(scaled, in_axes=(0,))(xs), expected)
    torch.testing.assert_close(mapped(xs, factor=xs), xs**3)
    torch.testing.assert_close(relay.vmap(scaled, in_axes=(0, None))(xs, 2.0), 2.0 * xs**2)
    torch.testing.assert_close(mapped(xs), expected)
