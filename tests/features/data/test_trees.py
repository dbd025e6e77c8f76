"""Recursion over trees, from Python source: values, gradients beside torch's, one compile."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import Dim, Float, Fn, Int, Tensor, relay
from tests.binary_trees import Leaf, Node, Tree

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
D, M = Dim("D"), Dim("M")


@dataclass(frozen=True)
class Row:
    items: Tensor[Float, (M,)]
    rest: Row | None = None


@dataclass(frozen=True)
class Nested(Generic[T]):
    """Each level holds pairs of what the level above holds."""

    value: T
    inner: Nested[tuple[T, T]] | None


@relay
def total(t: Tree[Float]) -> Float:
    match t:
        case Leaf(v):
            return relay.tanh(v)
        case Node(left, right):
            return total(left) * 2 + total(right)


@relay
def cell(t: Tree[Tensor[Float, (D,)]], w: Tensor[Float, (D, D)]) -> Tensor[Float, (D,)]:
    match t:
        case Leaf(v):
            return v
        case Node(left, right):
            return relay.tanh((cell(left, w) + cell(right, w)) @ w)


@relay
def loss(t: Tree[Tensor[Float, (D,)]], w: Tensor[Float, (D, D)]) -> Float:
    return cell(t, w).sum()


@relay
def size(t: Tree[T]) -> int:
    match t:
        case Leaf():
            return 1
        case Node(left, right):
            return size(left) + size(right)


@relay
def mapped(f: Fn[[A], B], t: Tree[A]) -> Tree[B]:
    match t:
        case Leaf(v):
            return Leaf(f(v))
        case Node(left, right):
            return Node(mapped(f, left), mapped(f, right))


@relay
def doubled(t: Tree[Float], n: int) -> tuple[Tree[Float], Tree[Int]]:
    return mapped(lambda x: x * 2, t), mapped(lambda _: n, t)


@relay
def rows(r: Row | None) -> Float:
    if r is None:
        return 0.0
    return (r.items * r.items).sum() + rows(r.rest)


@relay
def depth(n: Nested[T]) -> int:
    inner = n.inner
    if inner is None:
        return 1
    return 1 + depth(inner)


@relay
def is_even(t: Tree[T]) -> bool:
    match t:
        case Leaf():
            return False
        case Node(left, right):
            return is_odd(left) == is_odd(right)


@relay
def is_odd(t: Tree[T]) -> bool:
    return not is_even(t)


def tree(generator: random.Random, count: int, leaf: Any) -> Any:
    """Return a tree of random shape with leaves made by `leaf`."""
    if count == 1:
        return Leaf(leaf())
    cut = generator.randint(1, count - 1)
    return Node(tree(generator, cut, leaf), tree(generator, count - cut, leaf))


def leaves(t: Any) -> list[torch.Tensor]:
    """Return the values of the leaves."""
    return [t.value] if isinstance(t, Leaf) else leaves(t.left) + leaves(t.right)


def torch_total(t: Any) -> torch.Tensor:
    return torch.tanh(t.value) if isinstance(t, Leaf) else _sum(t)


def _sum(t: Any) -> torch.Tensor:
    return torch_total(t.left) * 2 + torch_total(t.right)


def torch_cell(t: Any, w: torch.Tensor) -> torch.Tensor:
    if isinstance(t, Leaf):
        return t.value
    return torch.tanh((torch_cell(t.left, w) + torch_cell(t.right, w)) @ w)


def test_one_compile_serves_200_shapes_value_and_gradient() -> None:
    generator = random.Random(0)
    torch.manual_seed(0)
    gradient = relay.grad(total)
    before = total.cache_info().misses
    for _ in range(200):
        t = tree(generator, generator.randint(1, 15), lambda: torch.randn(()))
        mine, theirs = leaves(gradient(t)), leaves(t)
        value = total(t)
        for leaf in theirs:
            leaf.requires_grad_()
        expected = torch_total(t)
        expected.backward()
        torch.testing.assert_close(value, expected.detach())
        for a, b in zip(mine, theirs, strict=True):
            torch.testing.assert_close(a, b.grad)
    assert total.cache_info().misses - before <= 1
    assert gradient.cache_info().misses == 1


def test_a_recursive_cell_has_torchs_gradients_for_tree_and_weights() -> None:
    generator = random.Random(1)
    torch.manual_seed(1)
    both = relay.value_and_grad(loss)
    for _ in range(10):
        t = tree(generator, generator.randint(2, 12), lambda: torch.randn(4))
        w = torch.randn(4, 4)
        value, (on_tree, on_weights) = both(t, w)
        inputs = [w, *leaves(t)]
        for leaf in inputs:
            leaf.requires_grad_()
        expected = torch_cell(t, w).sum()
        found = torch.autograd.grad(expected, inputs)
        torch.testing.assert_close(value, expected.detach())
        for a, b in zip([on_weights, *leaves(on_tree)], found, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
        joined = torch.autograd.grad(loss(t, w), inputs)
        for a, b in zip(joined, found, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_the_evaluator_agrees() -> None:
    t = tree(random.Random(2), 9, lambda: torch.tensor(0.5))
    assert total.interpret(t) == total(t)
    assert repr(doubled.interpret(t, 3)) == repr(doubled(t, 3))


def test_polymorphic_functions_over_data() -> None:
    t: Any = Node(Leaf(torch.tensor(1.0)), Leaf(2.0))
    twice, numbers = doubled(t, 3)
    assert repr(twice) == repr(Node(Leaf(torch.tensor(2.0)), Leaf(torch.tensor(4.0))))
    assert repr(numbers) == repr(Node(Leaf(torch.tensor(3)), Leaf(torch.tensor(3))))
    assert size(Node(Leaf("a"), Node(Leaf("b"), Leaf("c")))) == 3
    assert is_even(Node(Leaf(1), Leaf(2))) is True
    assert is_odd(Leaf(1)) is True


def test_recursion_at_other_types_than_its_own_is_annotated() -> None:
    assert depth(Nested(1, Nested((1, 2), Nested(((1, 2), (3, 4)), None)))) == 3


def test_rows_of_different_lengths_have_gradients() -> None:
    given = Row(torch.ones(3), Row(torch.full((2,), 2.0)))
    assert rows(given) == 11.0
    found = relay.grad(rows)(given)
    assert found.items.tolist() == [2.0] * 3
    assert found.rest.items.tolist() == [4.0] * 2
    assert rows(None) == 0.0


@pytest.mark.parametrize("leftwards", [True, False])
def test_trees_20000_deep_are_summed_and_differentiated(leftwards: bool) -> None:
    t: Any = Leaf(torch.tensor(0.25))
    side = Leaf(torch.tensor(0.0))
    for _ in range(20_000):
        t = Node(t, side) if leftwards else Node(side, t)
    assert size(t) == 20_001
    found: Any = relay.grad(squares)(t)
    for _ in range(20_000):
        found = found.left if leftwards else found.right
    assert float(found.value) == 0.5


@relay
def squares(t: Tree[Float]) -> Float:
    match t:
        case Leaf(v):
            return v * v
        case Node(left, right):
            return squares(left) + squares(right)
