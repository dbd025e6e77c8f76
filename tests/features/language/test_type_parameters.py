"""A type parameter stands for one type in each call from a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

from pyrelay import Float, Fn, RunError, relay
from pyrelay.prelude import List
from tests.binary_trees import Leaf, Node, Tree

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Other:
    value: Float


@relay
def first(x: T, y: T) -> T:
    return x


@relay
def put(xs: List[T], x: T) -> List[T]:
    return [x] + xs  # noqa: RUF005  a display of lists is another program


@relay
def mirror(tree: Tree[T]) -> Tree[T]:
    match tree:
        case Leaf():
            return tree
        case Node(left, right):
            return Node(mirror(right), mirror(left))


@relay
def swapped(pair: tuple[T, U]) -> tuple[U, T]:
    return pair[1], pair[0]


@relay
def applied(f: Fn[[T], U], x: T) -> U:
    return f(x)


@relay
def composed(f: Fn[[T], U], g: Fn[[U], T], xs: List[T]) -> List[T]:
    return [g(f(x)) for x in xs]


ONES = torch.ones(2)
ONE_TYPE: list[tuple[Any, Any]] = [
    (1, 2),
    (1, torch.tensor(2)),
    (1.0, torch.tensor(2.0)),
    ("a", "b"),
    (ONES, torch.zeros(2)),
    (ONES, np.zeros(2, np.float32)),
    ((1, 2.0), (3, 4.0)),
    ([], [1]),
    ([[]], [[], [1]]),
    (None, 1.0),
    (Leaf(1), Node(Leaf(2), Leaf(3))),
    ([Leaf(1.0)], [Node(Leaf(2.0), Leaf(3.0))]),
    (Other(1.0), Other(2.0)),
    (relay.tanh, relay.exp),
]
TWO_TYPES: list[tuple[Any, Any]] = [
    (1, 2.0),
    (1, True),
    (1.0, np.float64(2.0)),
    ("a", 1),
    (ONES, torch.ones(3)),
    (ONES, torch.ones(2, dtype=torch.float64)),
    (ONES, torch.ones(2, 1)),
    ((1, 2), (1, 2.0)),
    ((1, 2), (1, 2, 3)),
    ([1], [1.0]),
    (Leaf(1), Leaf(1.0)),
    (Leaf(1.0), Other(1.0)),
    ([Leaf(1)], [Node(Leaf("a"), Leaf("b"))]),
    (relay.tanh, 1.0),
]


@pytest.mark.parametrize(("x", "y"), ONE_TYPE)
def test_values_of_one_type_are_taken(x: Any, y: Any) -> None:
    assert type(first(x, y)) is type(first.interpret(x, y))
    assert len(put([x], y)) == 2


@pytest.mark.parametrize(("x", "y"), TWO_TYPES)
def test_values_of_two_types_are_refused(x: Any, y: Any) -> None:
    for call in (first, first.interpret, lambda x, y: put([x], y), lambda x, y: put([x, y], x)):
        with pytest.raises(RunError) as caught:
            call(x, y)
        assert caught.value.codes == ("RL559",)


def test_each_call_has_types_of_its_own() -> None:
    assert first(1, 2) == 1
    assert first("a", "b") == "a"
    assert first([1], [2])[0] == 1
    with pytest.raises(RunError, match="list"):
        first([1], ["a"])
    assert swapped((1, "a")) == ("a", 1)


def test_the_leaves_of_a_tree_are_of_one_type() -> None:
    assert mirror(Node(Leaf(1), Leaf(2))) == Node(Leaf(2), Leaf(1))
    with pytest.raises(RunError, match=r"Int as `tree.left.value` and Float as `tree.right.value`"):
        mirror(Node(Leaf(1), Leaf(2.0)))


def test_values_may_be_deep() -> None:
    deep: Any = 1
    tree: Any = Leaf(1)
    for _ in range(20_000):
        deep, tree = (deep,), Node(Leaf(2), tree)
    assert first(deep, deep) is not None
    assert isinstance(first(tree, Leaf(1)), Node)
    with pytest.raises(RunError):
        first(tree, Leaf(1.0))


def test_an_operator_is_passed_for_a_function_of_any_type() -> None:
    assert float(applied(relay.tanh, 1.0)) == pytest.approx(0.76159, abs=1e-4)
    for x in (ONES, torch.ones(2, 3)):
        torch.testing.assert_close(applied(relay.tanh, x), x.tanh())
        torch.testing.assert_close(applied.interpret(relay.tanh, x), x.tanh())
    xs = [torch.tensor([0.5]), torch.tensor([1.0])]
    found = composed(relay.tanh, relay.exp, xs)
    torch.testing.assert_close(found.to_list(), [x.tanh().exp() for x in xs])
    slope = relay.grad(applied, wrt="x")(relay.sin, 0.5)
    assert float(slope) == pytest.approx(np.cos(0.5), abs=1e-5)


def test_a_function_of_any_type_is_passed() -> None:
    @relay
    def twice(x: T) -> tuple[T, T]:
        return x, x

    @relay
    def same(x: T) -> T:
        return x

    assert applied(twice, 1) == (1, 1)
    assert applied(twice, "a") == ("a", "a")
    assert float(applied(relay.grad(same), 3.0)) == 1.0
