"""Data in C functions: traces of loops for their gradients, lists, options, trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, options, relay
from pyrelay.lower_c.functions import c_text, support
from tests.unit.lower_c.functions.compared import agree, counted

pytestmark = pytest.mark.host("lowerings are chosen here")

N, S = Dim("N"), Dim("S")
Rows = Tensor[Float, (N, S)]


@relay
def orbit(x: Float, n: Int) -> Float:
    for i in range(n):
        if i % 3 == 0:
            x = 3.7 * x * (1.0 - x)
        elif i % 3 == 1:
            x = x / 2.0 + 0.1
        else:
            x = x * x + 0.2
    return x


@relay
def triangle(x: Float, n: Int) -> Float:
    total = 0.0
    for i in range(n):
        term = x
        for _ in range(i):
            term = term * x
            if term < 0.001:
                break
        total += term
    return total


@relay
def tree_sum(x: Float, depth: Int) -> Float:
    if depth == 0:
        return x * x
    return tree_sum(x * 0.5, depth - 1) + x * tree_sum(x + 0.25, depth - 1)


@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("function", [orbit, triangle])
def test_a_gradient_keeps_the_path_of_a_loop(function: Any, n: int) -> None:
    agree(relay.value_and_grad(function, wrt="x"), torch.tensor(0.3), n)


def test_a_second_gradient_keeps_traces_in_traces() -> None:
    agree(relay.grad(relay.grad(orbit, wrt="x"), wrt="x"), torch.tensor(0.3), 20)


def test_a_gradient_keeps_the_tree_of_a_recursion() -> None:
    agree(relay.grad(tree_sum, wrt="x"), torch.tensor(0.3), 9)


@relay
def recurrent(x: Rows, w: Tensor[Float, (S, S)], start: Tensor[Float, (1, S)]) -> Float:
    h, slow = start, start
    for row in x:
        h = relay.tanh(relay.linear(h, w) + row)
        slow = slow * 0.5 + h
    return (slow * h).sum()


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_traces_hold_tensors(rows: int) -> None:
    torch.manual_seed(0)
    given = (torch.randn(rows, 5), torch.randn(5, 5), torch.randn(1, 5))
    gradient = relay.value_and_grad(recurrent, wrt=("w", "start"))
    with options(lowering="torch"):
        expected = gradient(*given)
    with options(lowering="c"), counted() as ran:
        found = gradient(*given)
    assert ran
    torch.testing.assert_close(found, expected)


@relay
def selected(n: Int) -> tuple[Int, Int]:
    kept = [i * i for i in range(n) if i % 7 < 3]
    kept.append(n)
    total = 0
    for value in kept:
        total += value
    return total, len(kept)


@relay
def last_square(n: Int, limit: Int) -> Int:
    found: Int | None = None
    for i in range(n):
        if i * i < limit:
            found = i
    return found if found is not None else -1


@dataclass(frozen=True)
class Leaf:
    value: Int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def grown(depth: Int, value: Int) -> Tree:
    if depth == 0:
        return Leaf(value)
    return Node(grown(depth - 1, value * 2), grown(depth - 1, value * 2 + 1))


@relay
def folded(tree: Tree) -> Int:
    match tree:
        case Leaf(value):
            return value
        case Node(Leaf(a), Leaf(b)):
            return a * b
        case Node(left, right):
            return folded(left) - folded(right)


@relay
def grown_and_folded(depth: Int) -> Int:
    return folded(grown(depth, 1))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (selected, (0,)),
        (selected, (40,)),
        (last_square, (0, 50)),
        (last_square, (30, 50)),
        (grown_and_folded, (0,)),
        (grown_and_folded, (1,)),
        (grown_and_folded, (6,)),
    ],
)
def test_programs_make_data_and_match_it(function: Any, args: tuple[int, ...]) -> None:
    agree(function, *args)


@relay
def doubled(n: Int) -> Int:
    values = [1]
    for _ in range(n):
        values.append(values[-1] * 2)
    return values[-1]


def test_an_error_in_the_midst_of_data_is_that_of_the_host() -> None:
    assert "does not fit into 64 bits" in agree(doubled, 70)


def test_data_that_take_too_much_memory_are_left_to_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = support.SUPPORT.replace("(size_t)4 << 30", "(size_t)1 << 17")
    assert small != support.SUPPORT
    monkeypatch.setattr(c_text, "SUPPORT", small)
    gradient = relay.grad(relay(_plain_orbit), wrt="x")
    with options(lowering="torch"):
        expected = gradient(torch.tensor(0.3), 5000)
    with options(lowering="c"), counted() as ran:
        assert torch.equal(gradient(torch.tensor(0.3), 5000), expected)
        assert not ran
        gradient(torch.tensor(0.3), 50)
        assert ran


def _plain_orbit(x: Float, n: Int) -> Float:
    for _ in range(n):
        x = 3.6 * x * (1.0 - x) / (1.0 + x)
    return x


def test_explain_lists_the_function_that_is_called_alone() -> None:
    gradient = relay.grad(orbit, wrt="x")
    with options(lowering="c"):
        gradient(torch.tensor(0.3), 5)
        text = gradient.explain()
    assert "grad.orbit: with what it calls" in text
    assert "run on the host" not in text


@relay
def steps_and_sum(v: Tensor[Float, (S,)], k: Int) -> Float:
    """Return a sum beside a loop: the cotangent that goes into the loop is a constant stretched."""
    first = v
    for _ in range(k):
        v = relay.tanh(v)
    return relay.tanh(first.sum()) + v.sum()


def test_a_constant_tensor_is_stretched_inside_of_a_function() -> None:
    mapped, rows = (
        relay.vmap(relay.grad(steps_and_sum, wrt="v"), in_axes=(0, None)),
        torch.ones(3, 2),
    )
    with options(lowering="torch"):
        expected = mapped(rows, 2)
    with options(lowering="c"):
        torch.testing.assert_close(mapped(rows, 2), expected)
