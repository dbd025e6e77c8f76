"""`relay.jvp`: derivatives in a direction, through everything that programs are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Fn, Int, Tensor, float64, relay

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N = Dim("N")


@dataclass(frozen=True)
class Leaf:
    value: float64
    label: Int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def close(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for a, e in zip(actual, expected, strict=True):
            close(a, e)
        return
    torch.testing.assert_close(torch.as_tensor(actual), expected, rtol=1e-10, atol=1e-12)


# Programs of one number, and the same in torch.


@relay
def power(x: float64) -> float64:
    return x**3 + relay.sin(x) * x


@relay
def countdown(n: Int, x: float64) -> float64:
    return 1.0 if n < 1 else relay.tanh(x) * countdown(n - 1, x * 0.5)


@relay
def recursion(x: float64) -> float64:
    return countdown(5, x)


@relay
def even(n: Int, x: float64) -> float64:
    return x if n == 0 else odd(n - 1, relay.sin(x))


@relay
def odd(n: Int, x: float64) -> float64:
    return x * x if n == 0 else even(n - 1, x * 0.5)


@relay
def mutual(x: float64) -> float64:
    return even(7, x)


@relay
def loop(x: float64) -> float64:
    total, y = 0.0 * x, x
    for i in range(6):
        if i % 2 == 0:
            y = y * relay.cos(x)
        else:
            total += y
    return total * y


@relay
def search(x: float64) -> float64:
    y = x
    while relay.abs(y) < 5.0:
        y = y * 1.7 + x
    return y


@relay
def reference(x: float64) -> float64:
    cell = relay.ref(x)
    total = x * 0.0
    for _ in range(4):
        cell.value = cell.value * relay.sin(x)
        total += cell.value
    return total


@relay
def closures(x: float64) -> float64:
    def add(y: float64) -> float64:
        return y + x

    def twice(f: Fn[[float64], float64], y: float64) -> float64:
        return f(f(y)) * y

    functions = [add, lambda y: y * x]
    return twice(add, x) + twice(functions[1], x)


@relay
def lists(x: float64) -> float64:
    xs = [x * 2.0, relay.exp(x)]
    for i in range(3):
        xs.append(xs[i] * x)
    return sum([relay.sin(y) for y in xs])


@relay
def joins(x: float64) -> float64:
    y = x
    if x > 0.5:
        y = y * x
    if y > 10.0:
        return y
    a, b = (y, x) if y > 0.1 else (x, y)
    return a * a * b


def plain_recursion(x: torch.Tensor) -> torch.Tensor:
    y = number(1.0)
    for i in reversed(range(5)):
        y = torch.tanh(x * 0.5**i) * y
    return y


def plain_mutual(x: torch.Tensor) -> torch.Tensor:
    for i in range(7):
        x = torch.sin(x) if i % 2 == 0 else x * 0.5
    return x * x


def plain_loop(x: torch.Tensor) -> torch.Tensor:
    total, y = 0.0 * x, x
    for i in range(6):
        y, total = (y * torch.cos(x), total) if i % 2 == 0 else (y, total + y)
    return total * y


def plain_search(x: torch.Tensor) -> torch.Tensor:
    y = x
    while float(y.abs()) < 5.0:
        y = y * 1.7 + x
    return y


def plain_reference(x: torch.Tensor) -> torch.Tensor:
    return sum(x * torch.sin(x) ** (i + 1) for i in range(4)) + x * 0.0


def plain_closures(x: torch.Tensor) -> torch.Tensor:
    return (x + x + x) * x + x * x * x * x


def plain_lists(x: torch.Tensor) -> torch.Tensor:
    xs = [x * 2.0, torch.exp(x)]
    for i in range(3):
        xs.append(xs[i] * x)
    return sum(map(torch.sin, xs[1:]), torch.sin(xs[0]))


PROGRAMS: list[tuple[Any, Callable[[torch.Tensor], torch.Tensor]]] = [
    (power, lambda x: x**3 + torch.sin(x) * x),
    (recursion, plain_recursion),
    (mutual, plain_mutual),
    (loop, plain_loop),
    (reference, plain_reference),
    (closures, plain_closures),
    (lists, plain_lists),
    (joins, lambda x: (x * x) ** 2 * x),
]
# `torch.func` cannot read a value to decide how often a loop runs.
DECIDED_BY_VALUES = [*PROGRAMS, (search, plain_search)]
programs = pytest.mark.parametrize(
    ("program", "plain"), PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS]
)


@programs
def test_value_and_tangent(program: Any, plain: Any) -> None:
    x, v = number(0.7), number(1.3)
    close(relay.jvp(program)((x,), (v,)), torch.func.jvp(plain, (x,), (v,)))


def test_a_loop_that_values_end() -> None:
    x = number(0.7)
    value, tangent = relay.jvp(search)((x,), (number(1.0),))
    close(value, plain_search(x))
    close(tangent, relay.grad(search)(x))


@programs
def test_forward_over_reverse(program: Any, plain: Any) -> None:
    x, v = number(0.7), number(1.3)
    found = relay.jvp(relay.grad(program))((x,), (v,))
    close(found, torch.func.jvp(torch.func.grad(plain), (x,), (v,)))


@programs
def test_forward_over_forward_and_reverse_over_forward(program: Any, plain: Any) -> None:
    @relay
    def slope(x: float64) -> float64:
        return relay.jvp(program)((x,), (1.0,))[1]

    @relay
    def curvature(x: float64) -> float64:
        return relay.jvp(slope)((x,), (1.0,))[1]

    x = number(0.7)
    second = torch.func.grad(torch.func.grad(plain))(x)
    close(curvature(x), second)
    close(relay.grad(slope)(x), second)
    close(relay.grad(relay.grad(program))(x), second)
    close(relay.grad(curvature)(x), torch.func.grad(torch.func.grad(torch.func.grad(plain)))(x))


# Data.


@relay
def total(tree: Tree, w: float64) -> float64:
    match tree:
        case Leaf(v, _):
            return relay.tanh(v * w)
        case Node(left, right):
            return total(left, w) * total(right, w) + w


@relay
def scaled(tree: Tree, w: float64) -> Tree:
    match tree:
        case Leaf(v, label):
            return Leaf(v * v * w, label)
        case Node(left, right):
            return Node(scaled(left, w), scaled(right, w))


TREE = Node(Leaf(number(0.3), 1), Node(Leaf(number(0.5), 2), Leaf(number(0.1), 3)))
ALONG = Node(Leaf(number(1.0), 0), Node(Leaf(number(2.0), 0), Leaf(number(3.0), 0)))


def test_a_tree_and_a_weight() -> None:
    def plain(a: Any, b: Any, c: Any, w: Any) -> Any:
        return torch.tanh(a * w) * (torch.tanh(b * w) * torch.tanh(c * w) + w) + w

    at = tuple(map(number, (0.3, 0.5, 0.1, 0.7)))
    along = tuple(map(number, (1.0, 2.0, 3.0, 1.0)))
    found = relay.jvp(total)((TREE, at[3]), (ALONG, along[3]))
    close(found, torch.func.jvp(plain, at, along))
    second = relay.jvp(relay.grad(total, wrt="w"))((TREE, at[3]), (ALONG, along[3]))
    close(second, torch.func.jvp(torch.func.grad(plain, argnums=3), at, along))


def test_the_tangent_of_data_is_the_same_data_with_zeros_for_integers() -> None:
    value, tangent = relay.jvp(scaled)((TREE, number(0.7)), (ALONG, number(1.0)))
    assert int(value.right.left.label) == 2
    assert int(tangent.right.left.label) == 0
    close(tangent.left.value, number(2 * 0.3 * 0.7 + 0.3 * 0.3))
    close(tangent.right.right.value, number(2 * 0.1 * 0.7 * 3.0 + 0.1 * 0.1))


def test_the_tangent_in_one_parameter() -> None:
    value, tangent = relay.jvp(scaled, wrt="w")((TREE, number(0.7)), (number(1.0),))
    close(tangent.right.left.value, number(0.25))
    close(value.right.left.value, number(0.25 * 0.7))


@relay
def of_list(xs: list[Tensor[float64, (N,)]]) -> Tensor[float64, (N,)]:
    total = xs[0]
    for x in xs:
        total = total * relay.sin(x)
    return total


def test_a_list_of_tensors() -> None:
    torch.manual_seed(0)
    xs = [torch.randn(3, dtype=torch.float64) for _ in range(4)]
    vs = [torch.randn(3, dtype=torch.float64) for _ in range(4)]

    def plain(*xs: torch.Tensor) -> torch.Tensor:
        total = xs[0]
        for x in xs:
            total = total * torch.sin(x)
        return total

    close(relay.jvp(of_list)((xs,), (vs,)), torch.func.jvp(plain, tuple(xs), tuple(vs)))


# Forms of the call.


@relay
def with_more(x: float64, n: Int) -> tuple[float64, Int]:
    return x * x, n + 1


def test_a_value_beside_the_result() -> None:
    found = relay.jvp(with_more, has_aux=True)((number(3.0), 4), (number(1.0),))
    close(found[:2], (number(9.0), number(6.0)))
    assert int(found[2]) == 5


def test_integers_carry_no_tangent() -> None:
    _, tangent = relay.jvp(with_more)((number(3.0), 4), (number(1.0),))
    close(tangent[0], number(6.0))
    assert int(tangent[1]) == 0


def test_a_parameter_that_is_not_used_has_no_part() -> None:
    @relay
    def first(x: float64, y: float64) -> float64:
        return relay.floor(y) + 0.0 * x

    found = relay.jvp(first, wrt="y")((number(1.0), number(2.5)), (number(1.0),))
    close(found, (number(2.0), number(0.0)))


def test_inside_compiled_code_a_lambda_captures() -> None:
    @relay
    def inside(x: float64, y: float64) -> tuple[float64, float64]:
        push = relay.jvp(lambda z: z * z * y)
        return push((x,), (1.0,))

    close(inside(number(3.0), number(5.0)), (number(45.0), number(30.0)))


def test_a_function_that_is_passed() -> None:
    @relay
    def slope(f: Fn[[float64], float64], x: float64) -> float64:
        return relay.jvp(f)((x,), (1.0,))[1]

    @relay
    def both(x: float64) -> float64:
        return slope(lambda y: y * y, x) + slope(power, x)

    close(slope(power, number(0.7)), relay.grad(power)(number(0.7)))
    close(both(number(0.7)), number(1.4) + relay.grad(power)(number(0.7)))


def test_effects_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    @relay
    def noisy(x: Float) -> Float:
        print("running")  # noqa: T201  what happens once
        return x * x

    relay.jvp(noisy)((2.0,), (1.0,))
    assert capsys.readouterr().out == "running\n"


# Perturbation confusion.


def test_the_tangents_of_nested_derivatives_are_not_confused() -> None:
    @relay
    def forward(x: float64) -> float64:
        return x * relay.jvp(lambda y: x + y)((1.0,), (1.0,))[1]

    @relay
    def mixed(x: float64) -> float64:
        return x * relay.grad(lambda y: x + y)(1.0)

    @relay
    def three(x: float64) -> float64:
        def middle(y: float64) -> float64:
            return y * relay.jvp(lambda z: x * y * z)((2.0,), (1.0,))[1]

        return x * relay.jvp(middle)((x,), (1.0,))[1]

    x, one = number(3.0), number(1.0)
    close(relay.jvp(forward)((x,), (one,)), (x, one))
    close(relay.jvp(mixed)((x,), (one,)), (x, one))
    close(relay.grad(forward)(x), one)
    close(relay.jvp(three)((x,), (one,)), (number(54.0), number(54.0)))
