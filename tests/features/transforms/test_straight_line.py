"""Derivatives of first-order programs, partially evaluated, are straight lines of operators: no
cells, closures, branches or residual data are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Fn, Int, float64, relay
from pyrelay.ir.expr import (
    Constructor,
    Function,
    GlobalVar,
    If,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
)
from pyrelay.ir.traverse import post_order
from tests.binary_trees import Leaf, Node
from tests.features.transforms.programs.control import power, total
from tests.golden import Golden

LEFT_OVER = (RefCreate, RefRead, RefWrite, Match, If, Constructor, Function, GlobalVar)


@dataclass(frozen=True)
class Pair:
    first: float64
    second: float64


@relay
def products(x: float64, y: float64) -> float64:
    return relay.sin(x * y) * x


@relay
def in_a_cell(x: float64, y: float64) -> float64:
    cell = relay.ref(x)
    cell.value = cell.value * y
    cell.value = cell.value * cell.value
    return cell.value


@relay
def in_closures(x: float64, y: float64) -> float64:
    def scaled(z: float64) -> float64:
        return z * y

    return scaled(scaled(x)) + relay.tanh(scaled(y))


@relay
def in_data(x: float64, y: float64) -> float64:
    pair = Pair(x * y, y)
    tree = Node(Leaf(pair.first), Leaf(pair.second))
    match tree:
        case Node(Leaf(a), Leaf(b)):
            return a * b
        case _:
            return x


@relay
def in_a_loop(x: float64, y: float64) -> float64:
    for i in range(3):
        x = x * y if i != 1 else relay.sin(x)
    return x


@relay
def in_recursion(x: float64, y: float64) -> float64:
    return power(x, 3) * power(y, 2)


@relay
def in_a_list(x: float64, y: float64) -> float64:
    values = [x, y, x * y]
    return values[0] * values[2]


@relay
def over_list(xs: list[float64], w: float64) -> float64:
    state = w
    for x in xs:
        state = relay.tanh(state * w + x)
    return state


@relay
def on_a_list(x: float64, y: float64) -> float64:
    return over_list([x, y], y)


@relay
def on_a_tree(x: float64, y: float64) -> float64:
    return total(Node(Node(Leaf(x), Leaf(y)), Node(Leaf(y), Leaf(x))), y)


@relay
def on_a_comb(x: float64, y: float64) -> float64:
    return total(Node(Leaf(x), Node(Leaf(y), Node(Leaf(x), Leaf(y)))), y)


@relay
def in_an_indexing_loop(x: float64, y: float64) -> float64:
    xs, state = relay.stack([x, y, x]), y
    for i in range(len(xs)):
        state = relay.tanh(state * y + xs[i] * xs[i])
    return state


@relay
def composed(f: Fn[[float64], float64], g: Fn[[float64], float64]) -> Fn[[float64], float64]:
    return lambda a: f(g(a))


@relay
def in_composed_functions(x: float64, y: float64) -> float64:
    both = composed(lambda a: a * y, lambda a: relay.exp(a))
    return both(both(x))


@relay
def with_a_tangent(x: float64, y: float64) -> float64:
    value, tangent = relay.jvp(lambda a: relay.tanh(a) * y)((x,), (y,))
    return value * tangent


@relay
def with_a_pullback(x: float64, y: float64) -> float64:
    value, pull = relay.vjp(lambda a: relay.exp(a) * y)(x)
    return pull(value) * value


@relay
def with_a_gradient(x: float64, y: float64) -> float64:
    slope = relay.grad(lambda a: relay.sin(a) * y)
    return slope(x) * slope(x * y)


@relay
def with_a_checkpoint(x: float64, y: float64) -> float64:
    again = relay.checkpoint(lambda a: relay.tanh(relay.exp(a) * y))
    return again(x) * again(y)


@relay
def chosen(a: float64, k: Int) -> float64:
    if k == 0:
        return a
    return relay.tanh(a) * a


@relay
def by_numbers(x: float64, y: float64) -> float64:
    return chosen(x, 0) * chosen(y, 1) + chosen(x * y, 2)


PROGRAMS = [
    products,
    in_a_cell,
    in_closures,
    in_data,
    in_a_loop,
    in_recursion,
    in_a_list,
    in_composed_functions,
    with_a_tangent,
    with_a_pullback,
    with_a_gradient,
    with_a_checkpoint,
    by_numbers,
    on_a_list,
    on_a_tree,
    on_a_comb,
    in_an_indexing_loop,
]
TRANSFORMS = {
    "grad": lambda f: relay.grad(f),
    "value_and_grad": lambda f: relay.value_and_grad(f),
    "jvp": lambda f: relay.jvp(f),
    "grad of grad": lambda f: relay.grad(relay.grad(f, wrt="x"), wrt="y"),
    "hvp": lambda f: relay.hvp(f),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_derivative_is_a_straight_line(program: Any, transform: str) -> None:
    derivative = TRANSFORMS[transform](program)
    made = relay.specialise(derivative)
    (function,) = made.module.functions.values()
    for node in post_order(function.body):
        assert not isinstance(node, LEFT_OVER), str(made)
    at = (torch.tensor(0.7, dtype=torch.float64), torch.tensor(-1.2, dtype=torch.float64))
    given = (at, at[::-1]) if transform in ("jvp", "hvp") else at
    torch.testing.assert_close(made(*given), derivative(*given))


@pytest.mark.parametrize("program", PROGRAMS[-4:], ids=lambda p: p.__name__)
def test_the_gradient_on_known_structure_is_its_arithmetic(program: Any, golden: Golden) -> None:
    made = relay.specialise(relay.grad(program))
    golden(f"{program.__name__}.relay", str(made))
