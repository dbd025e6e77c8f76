"""Values of data types 20,000 deep: made, matched, folded, shown, compared, differentiated."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List

DEEP = 20_000
N = Dim("N")


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@pytest.fixture(autouse=True)
def _the_recursion_limit_stays() -> None:
    assert sys.getrecursionlimit() == 1000


def vine(depth: int, *, to_the_left: bool) -> Tree:
    """Return a tree that goes down on one side."""
    tree: Tree = Leaf(torch.tensor(1.0))
    for _ in range(depth):
        leaf = Leaf(torch.tensor(0.5))
        tree = Node(tree, leaf) if to_the_left else Node(leaf, tree)
    return tree


@relay
def grown(depth: Int) -> Tree:
    tree = Leaf(1.0)
    for _ in range(depth):
        tree = Node(tree, Leaf(0.5))
    return tree


@relay
def total(tree: Tree) -> Float:
    match tree:
        case Leaf(value):
            return value
        case Node(left, right):
            return total(left) + total(right)


@relay
def height(tree: Tree) -> Int:
    match tree:
        case Leaf(_):
            return 0
        case Node(left, right):
            return 1 + max(height(left), height(right))


@relay
def mirrored(tree: Tree) -> Tree:
    match tree:
        case Leaf(_):
            return tree
        case Node(left, right):
            return Node(mirrored(right), mirrored(left))


@pytest.mark.parametrize("to_the_left", [True, False], ids=["left", "right"])
def test_a_deep_tree_is_taken_apart_and_made(to_the_left: bool) -> None:
    tree = vine(DEEP, to_the_left=to_the_left)
    assert float(total(tree)) == 1.0 + 0.5 * DEEP
    assert int(height(tree)) == DEEP
    assert relay.equal(mirrored(mirrored(tree)), tree)
    assert not relay.equal(mirrored(tree), tree)


@relay
def same(a: Tree, b: Tree) -> bool:
    return relay.equal(a, b)


def test_a_deep_tree_is_compared_in_a_program() -> None:
    tree = vine(DEEP, to_the_left=True)
    assert same(tree, vine(DEEP, to_the_left=True))
    assert not same(tree, vine(DEEP - 1, to_the_left=True))
    assert not same(tree, vine(DEEP, to_the_left=False))


def test_a_deep_tree_is_shown() -> None:
    tree = vine(DEEP, to_the_left=True)
    with pytest.raises(RecursionError):
        repr(tree)
    assert relay.show(tree).count("Node(") == DEEP


def test_a_mistake_deep_in_a_tree_is_named_by_a_short_path() -> None:
    wrong: Any = Leaf("text")
    for _ in range(DEEP):
        wrong = Node(wrong, Leaf(torch.tensor(0.5)))
    with pytest.raises(RunError) as caught:
        total(wrong)
    assert ".left.left.value" in str(caught.value)
    assert "more)" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_tree_that_is_shared_2_to_the_60_times_is_compared_and_passed() -> None:
    tree: Tree = Leaf(torch.tensor(1.0))
    other: Tree = Leaf(torch.tensor(1.0))
    for _ in range(60):
        tree, other = Node(tree, tree), Node(other, other)
    assert relay.equal(tree, other)
    assert int(leftmost(tree)) == 60


@relay
def leftmost(tree: Tree) -> Int:
    match tree:
        case Leaf(_):
            return 0
        case Node(left, _):
            return 1 + leftmost(left)


T = TypeVar("T")


@dataclass(frozen=True)
class Tip(Generic[T]):
    pass


@dataclass(frozen=True)
class Fork(Generic[T]):
    item: T
    hint: Int | None
    rest: List[Forks[T]]


Forks = Tip[T] | Fork[T]


@relay
def weight(tree: Forks[Float]) -> Float:
    match tree:
        case Tip():
            return 0.0
        case Fork(item, _, rest):
            return item + sum([weight(t) for t in rest])


def test_a_deep_generic_tree_of_lists_is_taken_and_differentiated() -> None:
    tree: Any = Tip()
    for number in range(DEEP):
        tree = Fork(torch.tensor(1.0), number, [tree])
    assert float(weight(tree)) == DEEP
    assert float(weight(relay.grad(weight)(tree))) == DEEP


@pytest.mark.usefixtures("frozen_heap")
def test_a_deep_value_is_freed() -> None:
    tree = mirrored(vine(DEEP, to_the_left=True))
    kept = weakref.ref(tree)
    del tree
    gc.collect()
    assert kept() is None


def test_a_deep_tree_is_made_in_a_loop() -> None:
    assert relay.equal(grown(DEEP), vine(DEEP, to_the_left=True))


def test_a_deep_tree_is_differentiated() -> None:
    tree = vine(DEEP, to_the_left=True)
    found = relay.grad(total)(tree)
    assert int(height(found)) == DEEP
    assert float(total(found)) == DEEP + 1


def test_a_deep_tree_is_evaluated_by_the_reference() -> None:
    assert float(total.interpret(vine(2000, to_the_left=True))) == 1.0 + 0.5 * 2000


@relay
def summed(xs: List[Float]) -> Float:
    return relay.foldr(lambda x, rest: x + rest, 0.0, xs)


@relay
def doubled(xs: List[Float]) -> List[Float]:
    return [2 * x for x in xs]


def test_a_long_list_is_folded_shown_compared_and_differentiated() -> None:
    xs = [torch.tensor(float(i % 7)) for i in range(DEEP)]
    twice = doubled(xs)
    assert len(twice) == DEEP
    assert float(summed(twice)) == 2 * float(sum(xs))
    assert len(repr(twice)) > DEEP
    assert relay.equal(twice, doubled(xs))
    grads = relay.grad(summed)(xs)
    assert [float(g) for g in grads] == [1.0] * DEEP


@relay
def rows(x: Tensor[Float, (N, 2)], _: List[Float]) -> List[Tensor[Float, (2,)]]:
    return [row for row in x]  # noqa: C416  `list` is no function of the language


def test_a_long_list_of_views_of_an_argument_comes_back_in_storage_of_its_own() -> None:
    x = torch.zeros(DEEP, 2)
    found = rows(x, list(torch.zeros(DEEP).unbind()))
    x += 1
    assert sum(float(row.sum()) for row in found) == 0.0


@relay_model
def scored(tree: Tree) -> Tensor[Float, (2,)]:
    return relay.linear(total(tree).unsqueeze(0), out_features=2)


def test_a_saved_model_takes_a_deep_tree(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(scored, seed=0))
    exported.save(tmp_path / "scored.safetensors")
    loaded = relay.load_model(tmp_path / "scored.safetensors")
    tree = vine(DEEP, to_the_left=False)
    torch.testing.assert_close(loaded(tree), exported(tree))


@relay
def last(xs: List[Float], found: Float) -> Float:
    match xs:
        case [x, *rest]:
            return last(rest, x)
        case _:
            return found


def test_tail_calls_run_in_constant_stack() -> None:
    xs = [float(i) for i in range(5 * DEEP)]
    assert float(last(xs, -1.0)) == 5 * DEEP - 1
