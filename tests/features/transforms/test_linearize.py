"""`relay.linearize`: the value, and the derivative there as a function of directions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Int, Tensor, float64, relay

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N, M = Dim("N"), Dim("M")
VECTOR = Tensor[float64, (N,)]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


W, X, V, U = random(2, 3), random(3, seed=1), random(2, 3, seed=2), random(3, seed=3)


@relay
def rows(w: Tensor[float64, (M, N)], x: VECTOR) -> Tensor[float64, (M,)]:
    y = x
    for _ in range(2):
        y = relay.sin(y) * x
    return relay.tanh(w @ y)


@relay
def squares(x: VECTOR) -> float64:
    return relay.sum(relay.sin(x) ** 2)


def plain_rows(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(w @ (torch.sin(torch.sin(x) * x) * x))


def test_the_linear_function_is_the_derivative_along_any_direction() -> None:
    value, linear = relay.linearize(rows)(W, X)
    for along in ((V, U), (W, X), (V * 2.0, U * 0.0)):
        expected = torch.func.jvp(plain_rows, (W, X), along)
        torch.testing.assert_close((value, linear(*along)), expected)
    value, linear = relay.linearize(rows, wrt="x")(W, X)
    expected = torch.func.jvp(lambda x: plain_rows(W, x), (X,), (U,))
    torch.testing.assert_close((value, linear(U)), expected)


@relay
def recursive(n: Int, x: float64) -> float64:
    if n == 0:
        return x
    return relay.sin(x) * recursive(n - 1, x * 1.1)


@relay
def product(xs: list[float64]) -> float64:
    found = 1.0
    for x in xs:
        found = found * relay.sin(x)
    return found


@relay
def swapped(pair: tuple[float64, VECTOR], n: Int) -> tuple[VECTOR, float64]:
    return pair[1] * pair[0], pair[0] ** n


@pytest.mark.parametrize(
    ("function", "at", "along"),
    [
        (recursive, (3, random(seed=4)), (random(seed=5),)),
        (product, ([random(seed=4), random(seed=5)],), ([random(seed=6), random(seed=7)],)),
        (swapped, ((random(seed=4), X), 3), ((random(seed=5), U),)),
    ],
)
def test_it_goes_through_recursion_lists_and_tuples(function: Any, at: Any, along: Any) -> None:
    value, linear = relay.linearize(function)(*at)
    torch.testing.assert_close((value, linear(*along)), relay.jvp(function)(at, along))


def test_it_is_used_inside_compiled_code_and_differentiated() -> None:
    @relay
    def second(x: VECTOR) -> float64:
        _, linear = relay.linearize(lambda y: relay.sum(relay.sin(y) ** 2 * x))(x)
        return linear(x) + linear(x * linear(x))

    def reference(x: torch.Tensor) -> torch.Tensor:
        def linear(v: torch.Tensor) -> torch.Tensor:
            return (2.0 * torch.sin(x) * torch.cos(x) * x * v).sum()

        return linear(x) + linear(x * linear(x))

    torch.testing.assert_close(second(X), reference(X))
    torch.testing.assert_close(relay.grad(second)(X), torch.func.grad(reference)(X))


def test_a_pullback_is_differentiated_as_any_function_is() -> None:
    @relay
    def bent(x: VECTOR) -> float64:
        value, pull = relay.vjp(rows, wrt="x")(relay.stack((x, x * x)), x)
        return relay.grad(lambda g: relay.sum(relay.sin(pull(g * g))))(value).sum()

    def reference(x: torch.Tensor) -> torch.Tensor:
        w = torch.stack((x, x * x))
        value, pull = torch.func.vjp(lambda y: plain_rows(w, y), x)
        return torch.func.grad(lambda g: torch.sin(pull(g * g)[0]).sum())(value).sum()

    torch.testing.assert_close(bent(X), reference(X))


def test_calls_of_the_linear_function_run_nothing_of_the_function_again() -> None:
    @relay
    def many(x: VECTOR, n: Int) -> float64:
        linear = relay.linearize(squares)(x)[1]
        total = 0.0
        for _ in range(n):
            total = total + linear(x * total)
        return total

    once, _, loop = many.show("simplified").partition("let rec")
    assert "sin(" in once
    assert "cos(" in once
    assert "multiply(" in loop
    assert "sin(" not in loop
    assert "cos(" not in loop
