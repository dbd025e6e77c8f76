"""Specialised functions in compiled code: called, passed, differentiated and mapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Any as AnySize
from pyrelay import CheckError, Dim, Float, Int, Tensor, relay

N = Dim("N")


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def power(x: Float, n: Int) -> Float:
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half if n % 2 == 0 else x * half * half


@relay
def total(tree: Tree, w: Float) -> Float:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Node(left, right):
            return total(left, w) + total(right, w)


@relay
def grown(n: Int, x: Float) -> Tree:
    return Leaf(x) if n <= 0 else Node(grown(n - 1, x), grown(n - 2, x * 0.5))


@relay
def affine(w: Tensor[Float, (N,)], x: Tensor[Float, (N,)], b: Float) -> Tensor[Float, (N,)]:
    return w * x + b


@relay
def above(x: Tensor[Float, (N,)], limit: Float) -> Tensor[Float, (AnySize,)]:
    return x[x > limit] * limit


@relay
def applied(f: Callable[[Float], Float], times: Int, x: Float) -> Float:
    for _ in range(times):
        x = f(x)
    return x


fifth = relay.specialise(power, n=5)
fifth_slope = relay.grad(fifth)
at_two = relay.specialise(total, w=2.0)
scaled = relay.specialise(affine, w=torch.linspace(0, 1, 1000), b=3.0)
shifted = relay.specialise(affine, b=1.0)
above_half = relay.specialise(above, limit=0.5)


@relay
def calls(x: Float) -> Float:
    return fifth(x=x) + 1.0


@relay
def of_data(x: Float) -> Float:
    return at_two(grown(4, x)) + total(grown(2, x), x) * fifth(x)


@relay
def of_large(x: Float) -> Float:
    return scaled(relay.expand(x, (1000,))).sum()


@relay
def of_sizes(x: Float) -> Float:
    pair = relay.stack([x, x * 3.0])
    return shifted(pair, pair).sum() + above_half(pair).sum() + above_half(pair * 0.5).sum()


@relay
def passes(x: Float) -> Float:
    return applied(fifth, 2, x) + relay.grad(fifth)(x) * fifth_slope(x)


WANTED: dict[Any, Callable[[Any], Any]] = {
    calls: lambda x: power(x, 5) + 1,
    of_data: lambda x: total(grown(4, x), 2.0) + total(grown(2, x), x) * power(x, 5),
    of_large: lambda x: affine(torch.linspace(0, 1, 1000), x.expand(1000), 3.0).sum(),
    of_sizes: lambda x: (
        affine(torch.stack([x, x * 3]), torch.stack([x, x * 3]), 1.0).sum()
        + above(torch.stack([x, x * 3]), 0.5).sum()
        + above(torch.stack([x, x * 3]) * 0.5, 0.5).sum()
    ),
    passes: lambda x: power(power(x, 5), 5) + (5 * x**4) ** 2,
}


@pytest.mark.parametrize("function", WANTED, ids=lambda f: f.__name__)
def test_a_specialised_function_is_a_function_of_programs(function: Any) -> None:
    x = torch.tensor(0.4, requires_grad=True)
    wanted = WANTED[function](x)
    torch.testing.assert_close(function(x), wanted)
    torch.testing.assert_close(function.interpret(x.detach()), wanted.detach())
    (slope,) = torch.autograd.grad(wanted, x)
    torch.testing.assert_close(relay.grad(function)(x.detach()), slope)


def test_specialised_functions_are_mapped_and_specialised_again() -> None:
    xs = torch.tensor([0.3, 0.7])
    wanted = torch.stack([of_data(x) for x in xs])
    torch.testing.assert_close(relay.vmap(of_data)(xs), wanted)
    torch.testing.assert_close(relay.specialise(of_data)(0.3), wanted[0])


def test_its_program_is_part_of_the_program() -> None:
    text = str(relay.specialise(calls))
    assert text.count("multiply(") == 3
    assert "floor_divide" not in calls.show("typed")


def test_a_call_passes_what_is_not_fixed() -> None:
    @relay
    def wrong(x: Float) -> Float:
        return fifth(x, 2)

    with pytest.raises(CheckError, match="`power` takes 1 argument by position, not 2"):
        wrong(2.0)


def test_another_specialised_function_under_the_name_is_used_from_then_on() -> None:
    current = relay.specialise(power, n=2)

    @relay
    def uses(x: Float) -> Float:
        return current(x)

    assert uses(3.0) == 9.0
    current = relay.specialise(power, n=3)
    assert uses(3.0) == 27.0
