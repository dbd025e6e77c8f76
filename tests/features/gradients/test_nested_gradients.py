"""Gradients of gradients of functions that capture, are passed and are returned, against torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.func import grad

from pyrelay import Float, Fn, relay


@relay
def q(x: Float) -> Float:
    return x * x * x + relay.sin(x)


@relay
def in_a_lambda(x: Float):
    return relay.grad(lambda y: relay.grad(lambda z: relay.grad(q)(z) * z)(y))(x)


@relay
def with_captures(x: Float):
    return relay.grad(
        lambda y: (
            relay.grad(lambda z: relay.grad(lambda w: w * w * w * w * z * y * x)(z) * z * y)(y) * x
        )
    )(x)


@relay
def four_deep(x: Float):
    def a(y: Float) -> Float:
        def b(z: Float) -> Float:
            def c(w: Float) -> Float:
                return relay.grad(lambda u: relay.grad(q)(u) * u * w)(w) * w * z

            return relay.grad(c)(z) * z * y

        return relay.grad(b)(y) * y * x

    return relay.grad(a)(x)


@relay
def values_and_gradients(x: Float):
    def product(z: Float) -> Float:
        value, slope = relay.value_and_grad(q)(z)
        return value * slope

    return relay.grad(lambda y: relay.grad(product)(y))(x)


@relay
def by_pullback(x: Float):
    _, pull = relay.vjp(lambda y: relay.grad(lambda z: relay.grad(q)(z) * z)(y))(x)
    return pull(1.0)


@relay
def in_a_loop(x: Float):
    def descend(f: Fn[[Float], Float]) -> Float:
        t = x
        for _ in range(3):
            t += relay.grad(lambda y: relay.grad(lambda z: f(z) * t)(y))(t) * 0.1  # noqa: B023  the gradient is taken at once
        return t

    return relay.grad(lambda u: descend(lambda z: z * z * z * u))(x)


@relay
def local_maker(x: Float):
    def derivative(f: Fn[[Float], Float]) -> Fn[[Float], Float]:
        return relay.grad(f)

    return derivative(derivative(derivative(q)))(x)


@relay
def damped(f: Fn[[Float], Float], c: Float) -> Fn[[Float], Float]:
    return lambda x: relay.grad(f)(x) * c


@relay
def maker(x: Float):
    return damped(damped(q, x), 2.0)(x)


@relay
def composed(f: Fn[[Float], Float], g: Fn[[Float], Float]) -> Fn[[Float], Float]:
    return lambda x: f(g(x))


@relay
def composition(x: Float):
    inner = relay.grad(composed(q, lambda y: relay.sin(y)))
    return relay.grad(composed(inner, lambda y: relay.exp(y)))(x)


@relay
def curried(a: Float) -> Fn[[Float], Float]:
    return lambda b: a * b * b


@relay
def of_what_a_call_returns(x: Float):
    return relay.grad(lambda y: relay.grad(relay.grad(curried(y)))(x * y) * y)(x)


@dataclass(frozen=True)
class Scaled:
    function: Fn[[Float], Float]
    scale: Float


@relay
def of_a_function_in_data(x: Float):
    scaled = Scaled(lambda y: y * y * x, x)
    return relay.grad(lambda z: relay.grad(scaled.function)(z * scaled.scale) * z)(x)


@relay
def third_through_a_cell(x: Float):
    def squared(y: Float) -> Float:
        cell = relay.ref(y)
        for _ in range(3):
            cell.value = cell.value * cell.value + x
        return cell.value

    return relay.grad(relay.grad(relay.grad(squared)))(x * 0.5)


@relay
def second_through_a_list(x: Float):
    def summed(y: Float) -> Float:
        xs = [y]
        for _ in range(4):
            xs.append(xs[-1] * relay.cos(y))
        total = 0.0
        for v in xs:
            total += v
        return total

    return relay.grad(relay.grad(summed))(x)


@relay
def third_through_while(x: Float):
    def grown(y: Float) -> Float:
        while y < 20.0:
            y = y * y + 2.0
        return y

    return relay.grad(relay.grad(relay.grad(grown)))(x * x)


def torch_third_through_a_cell(x: Any) -> Any:
    def squared(y: Any) -> Any:
        for _ in range(3):
            y = y * y + x
        return y

    return grad(grad(grad(squared)))(x * 0.5)


def torch_second_through_a_list(x: Any) -> Any:
    return grad(grad(lambda y: sum(y * torch.cos(y) ** i for i in range(5))))(x)


def torch_third_through_while(x: Any) -> Any:
    rounds = 2 if x > 1.0 else 3

    def grown(y: Any) -> Any:
        for _ in range(rounds):
            y = y * y + 2.0
        return y

    return grad(grad(grad(grown)))(x * x)


def tq(x: Any) -> Any:
    return x**3 + torch.sin(x)


def torch_in_a_lambda(x: Any) -> Any:
    return grad(lambda y: grad(lambda z: grad(tq)(z) * z)(y))(x)


def torch_with_captures(x: Any) -> Any:
    return grad(lambda y: grad(lambda z: grad(lambda w: w**4 * z * y * x)(z) * z * y)(y) * x)(x)


def torch_four_deep(x: Any) -> Any:
    def a(y: Any) -> Any:
        def b(z: Any) -> Any:
            def c(w: Any) -> Any:
                return grad(lambda u: grad(tq)(u) * u * w)(w) * w * z

            return grad(c)(z) * z * y

        return grad(b)(y) * y * x

    return grad(a)(x)


def torch_in_a_loop(x: Any) -> Any:
    def descend(f: Callable[[Any], Any]) -> Any:
        t = x
        for _ in range(3):
            t = t + grad(lambda y, t=t: grad(lambda z: f(z) * t)(y))(t) * 0.1
        return t

    return grad(lambda u: descend(lambda z: z**3 * u))(x)


def torch_composition(x: Any) -> Any:
    inner = grad(lambda y: tq(torch.sin(y)))
    return grad(lambda y: inner(torch.exp(y)))(x)


CASES: list[tuple[Any, Callable[[Any], Any]]] = [
    (in_a_lambda, torch_in_a_lambda),
    (with_captures, torch_with_captures),
    (four_deep, torch_four_deep),
    (values_and_gradients, lambda x: grad(lambda y: grad(lambda z: tq(z) * grad(tq)(z))(y))(x)),
    (by_pullback, torch_in_a_lambda),
    (in_a_loop, torch_in_a_loop),
    (local_maker, lambda x: grad(grad(grad(tq)))(x)),
    (maker, lambda x: 2.0 * x * grad(grad(tq))(x)),
    (composition, torch_composition),
    (of_what_a_call_returns, lambda x: grad(lambda y: 2.0 * y * y)(x)),
    (of_a_function_in_data, lambda x: grad(lambda z: 2.0 * z * x * x * z)(x)),
    (third_through_a_cell, torch_third_through_a_cell),
    (second_through_a_list, torch_second_through_a_list),
    (third_through_while, torch_third_through_while),
]


@pytest.mark.parametrize(
    ("program", "reference"), CASES, ids=[inspect.unwrap(c[0]).__name__ for c in CASES]
)
def test_gradients_nest_to_any_depth_in_functions_that_capture(
    program: Any, reference: Callable[[Any], Any]
) -> None:
    for number in (1.3, -0.4):
        x = torch.tensor(number)
        torch.testing.assert_close(program(x), reference(x), rtol=1e-4, atol=1e-5)
        expected = grad(reference)(x)
        torch.testing.assert_close(relay.grad(program)(x), expected, rtol=1e-4, atol=1e-4)
