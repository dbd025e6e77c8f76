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


@dataclass(frozen=True)
class One:
    value: float64


@dataclass(frozen=True)
class Two:
    first: float64
    second: float64


Kind = One | Two


@relay
def in_tuples(x: float64, y: float64) -> float64:
    first, (second, third) = (x * y, (x, y + x))
    both = (third, first)
    return both[0] * both[1] + second


@relay
def or_else(value: float64 | None, otherwise: float64) -> float64:
    return otherwise if value is None else value * otherwise


@relay
def in_optionals(x: float64, y: float64) -> float64:
    return or_else(x * y, y) + or_else(None, y) * x


@relay
def until_second(x: float64, count: Int) -> float64:
    if count < 0:
        return relay.sin(x)
    for i in range(count):
        x = x * x
        if i == 1:
            return x
    return relay.exp(x)


@relay
def with_early_returns(x: float64, y: float64) -> float64:
    return until_second(x, 3) * until_second(y, -1) * until_second(x * y, 1)


@relay
def in_a_while(x: float64, y: float64) -> float64:
    rounds = 0
    while True:
        rounds += 1
        if rounds == 2:
            continue
        if rounds > 4:
            break
        x = x * y + 1.0
    return x


@relay
def of_kind(kind: Kind, scale: float64) -> float64:
    match kind:
        case One(value):
            return value * scale
        case Two(first, second):
            return first * second + scale


@relay
def on_known_data(x: float64, y: float64) -> float64:
    return of_kind(One(x * y), y) + of_kind(Two(x, y), x)


@relay
def power_by_halves(x: float64, n: Int) -> float64:
    if n == 0:
        return 1.0
    half = power_by_halves(x, n // 2)
    return half * half if n % 2 == 0 else half * half * x


@relay
def in_helper_recursion(x: float64, y: float64) -> float64:
    return power_by_halves(x * y, 5) + power_by_halves(y, 2)


@relay
def in_a_grown_list(x: float64, y: float64) -> float64:
    values = [x, y, x * y]
    values.append(x + y)
    total = relay.cast(0.0, float64)
    for i, (a, b) in enumerate(zip(values, reversed(values))):
        total = total + a * b * (i + 1)
    return total


@relay
def in_stacked_lists(x: float64, y: float64) -> float64:
    rows = [relay.stack([v * x, v]) for v in [x, y, y * y]]
    return relay.stack(rows).sum(0).prod() * relay.stack(rows, dim=1)[1, 2]


@relay
def even(x: float64, y: float64, n: Int) -> float64:
    return x if n <= 0 else odd(x * y, y, n - 1)


@relay
def odd(x: float64, y: float64, n: Int) -> float64:
    return y if n <= 0 else even(x + y, y, n - 1)


@relay
def in_mutual_recursion(x: float64, y: float64) -> float64:
    return even(x, y, 5)


@relay
def by_name(x: float64, name: str) -> float64:
    return relay.sin(x) if name == "sin" else relay.exp(x)


@relay
def by_texts(x: float64, y: float64) -> float64:
    return by_name(x, "sin") * by_name(y, "exp")


PROGRAMS = [
    products,
    in_tuples,
    in_optionals,
    with_early_returns,
    in_a_while,
    on_known_data,
    in_helper_recursion,
    in_a_grown_list,
    in_stacked_lists,
    in_mutual_recursion,
    by_texts,
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
