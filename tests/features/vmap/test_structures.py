"""Elements of a batch that build data of different structure have the values of a loop of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Int, Tensor, float64, relay

N = Dim("N")
D = float64
Number = Tensor[D, ()]


@dataclass(frozen=True)
class Leaf:
    value: Number


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@dataclass(frozen=True)
class Point:
    x: Number
    row: Tensor[D, (3,)]
    order: Int


@dataclass(frozen=True)
class Up:
    pass


@dataclass(frozen=True)
class Down:
    pass


Way = Up | Down


@relay
def grow(x: Number, n: Int) -> Tree:
    if n <= 0:
        return Leaf(x)
    if x > 0.0:
        return Node(Leaf(x), grow(x - 1.0, n - 1))
    return Node(grow(x * 0.5, n - 2), Leaf(x * 2.0))


@relay
def total(tree: Tree) -> Number:
    match tree:
        case Leaf(value):
            return relay.exp(value)
        case Node(Leaf(value), right):
            return value * total(right)
        case Node(left, right):
            return total(left) + total(right) * 3.0


@relay
def recursive(x: Number, n: Int) -> Number:
    return total(grow(x, n))


@relay
def guarded(x: Number, n: Int) -> Number:
    match grow(x, n):
        case Leaf(value) if value > 0.5:
            return value
        case Node(Leaf(value), _) if value > 1.0:
            return value * 2.0
        case other:
            return total(other) - 1.0


@relay
def either_list(x: Number, n: Int) -> Number:
    found = [x, x * n]
    if x > 0.0:
        found = [x]
    result = x * 0.0
    for value in found:
        result = result * 0.5 + value * value
    return result * len(found)


@relay
def collected(x: Number, n: Int) -> Number:
    values = [x]
    while x < 3.0:
        x = relay.abs(x) * 1.5 + 0.5
        values.append(x)
    values[0] = x * n
    return relay.sum(relay.stack([v * v for v in values[:1]])) + values[-1] * len(values)


@relay
def list_in_a_cell(x: Number, n: Int) -> Number:
    values = relay.ref([x])

    def push(v: Number) -> Int:
        values.value = [*values.value, v] if v > 0.0 else values.value
        return len(values.value)

    count = 0
    for i in range(n):
        count += push(x - i)
    return sum(values.value) + count


@relay
def optional(x: Number, n: Int) -> Number:
    found: Number | None = None
    if x > 0.0:
        found = relay.log(x)
    if found is None:
        return x * n
    return found * 2.0


@relay
def record(x: Number, n: Int) -> Number:
    if x > 0.0:
        p = Point(relay.log(x), relay.stack([x, x, x]), n)
    else:
        p = Point(x, relay.zeros((3,), dtype=D), n + 1)
    return p.x + p.row.sum() * p.order


@relay
def enumerated(x: Number, n: Int) -> Number:
    def turned(way: Way) -> Way:
        match way:
            case Up():
                return Down()
            case Down():
                return Up()

    way: Way = Up()
    for _ in range(n):
        way = turned(way)
    match way:
        case Up():
            return relay.exp(x)
        case Down():
            return -x


@relay
def chosen_function(x: Number, n: Int) -> Number:
    def scaled(v: Number) -> Number:
        return v * x

    def shifted(v: Number) -> Number:
        return relay.exp(v) + n

    f = scaled if x > 0.0 else shifted
    return f(f(x))


@relay
def tuples(x: Number, n: Int) -> Number:
    found = (n, [x]) if x > 0.0 else (n + 1, [x, x])
    match found:
        case (0, _):
            return x
        case (1, [first, second]):
            return first * second + 1.0
        case (count, values):
            return values[0] * count + len(values)


@relay
def trips(x: Number, n: Int) -> Number:
    y = x * x
    while y < 10.0:
        y = y * 2.0 + n + 1.0
    return y


PROGRAMS = [
    recursive,
    guarded,
    either_list,
    collected,
    list_in_a_cell,
    optional,
    record,
    enumerated,
    chosen_function,
    tuples,
    trips,
]
XS = torch.tensor([0.4, -1.3, 1.7, -0.2, 2.6, 0.9, -2.1], dtype=torch.float64)
NS = torch.tensor([0, 1, 2, 3, 4, 1, 5])
PAIRS = list(zip(XS, NS, strict=True))


def names(f: Any) -> str:
    return f.__name__


@pytest.mark.parametrize("f", PROGRAMS, ids=names)
def test_values_are_those_of_each(f: Any) -> None:
    wanted = torch.stack([f(x, n) for x, n in PAIRS])
    torch.testing.assert_close(relay.vmap(f)(XS, NS), wanted)
    torch.testing.assert_close(relay.vmap(f)(XS[:1], NS[:1]), wanted[:1])


def test_an_empty_batch_takes_no_arm() -> None:
    for f in (recursive, tuples, record):
        assert relay.vmap(f)(XS[:0], NS[:0]).shape == (0,)


@pytest.mark.parametrize("f", PROGRAMS, ids=names)
def test_gradients_of_each(f: Any) -> None:
    gradient = relay.grad(f, wrt="x")
    wanted = torch.stack([gradient(x, n) for x, n in PAIRS])
    torch.testing.assert_close(relay.vmap(gradient)(XS, NS), wanted)


@pytest.mark.parametrize("f", [guarded, collected, record, tuples], ids=names)
def test_gradients_of_the_whole(f: Any) -> None:
    @relay
    def whole(xs: Tensor[D, (N,)], ns: Tensor[Int, (N,)]) -> Number:
        return relay.vmap(f)(xs, ns).sum()

    gradient = relay.grad(f, wrt="x")
    wanted = torch.stack([gradient(x, n) for x, n in PAIRS])
    torch.testing.assert_close(relay.grad(whole, wrt="xs")(XS, NS), wanted)


@relay
def halves(x: Number, n: Int) -> list[Number]:
    if x > 0.0:
        return [x, x * 2.0]
    return [x * n, x]


def test_structures_that_agree_are_returned() -> None:
    found = relay.vmap(halves)(XS, NS)
    wanted = [torch.stack(column) for column in zip(*(halves(x, n) for x, n in PAIRS), strict=True)]
    torch.testing.assert_close(list(found), wanted)
