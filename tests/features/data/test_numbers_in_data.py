"""Floats of Python in data: tensors inside, wherever they stand and however often."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from pyrelay import Float, Int, options, relay


@dataclass(frozen=True)
class Leaf:
    weight: Float
    times: Int


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Node:
    left: Tree
    scale: Float
    right: Tree


Tree = Leaf | Empty | Node


@relay
def total(tree: Tree) -> Float:
    match tree:
        case Leaf(weight, times):
            return weight * times
        case Empty():
            return 0.0
        case Node(left, scale, right):
            return scale * (total(left) + total(right))


def plainly(tree: Tree) -> float:
    """Return the same in Python."""
    if isinstance(tree, Leaf):
        return float(tree.weight) * tree.times
    if isinstance(tree, Empty):
        return 0.0
    return float(tree.scale) * (plainly(tree.left) + plainly(tree.right))


@dataclass(frozen=True)
class Forest:
    tree: Tree
    rest: Forest | None


@relay
def sums(forest: Forest) -> Float:
    found = total(forest.tree)
    rest = forest.rest
    return found if rest is None else found + sums(rest)


SHARED = Leaf(0.5, 3)
HALF = Node(SHARED, 2.0, Empty())
TREES = {
    "a leaf": Leaf(1.5, 2),
    "no number": Empty(),
    "numbers at every place": Node(Node(Leaf(1.5, 2), 0.25, Leaf(2.5, 1)), 2.0, Leaf(-1.0, 4)),
    "one number in two places": Node(Leaf(1.5, 1), 1.5, Leaf(1.5, 2)),
    "a leaf in two places": Node(SHARED, 1.5, Node(Empty(), 3.0, SHARED)),
    "a node in two places": Node(HALF, 1.5, Node(Leaf(0.1, 1), 3.0, HALF)),
    "tensors beside numbers": Node(Leaf(torch.tensor(2.0), 1), 1.5, Leaf(0.5, 1)),
    "a tree that was met alone": Node(HALF, 0.5, Leaf(1.0, 1)),
}


@pytest.mark.parametrize("lowering", ["torch", "c"])
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_a_tree_has_the_value_of_python(tree: Tree, lowering: str) -> None:
    with options(lowering=lowering):
        for _ in range(3):  # the second call knows the instance
            assert float(total(tree)) == pytest.approx(plainly(tree))
        assert float(total(HALF)) == pytest.approx(plainly(HALF))


@pytest.mark.parametrize("lowering", ["torch", "c"])
def test_trees_in_data_of_another_type_have_the_value_of_python(lowering: str) -> None:
    forest: Forest | None = None
    for tree in TREES.values():
        forest = Forest(tree, forest)
    assert forest is not None
    with options(lowering=lowering):
        for _ in range(3):
            assert float(sums(forest)) == pytest.approx(sum(map(plainly, TREES.values())))


def test_a_deep_tree_has_the_value_of_python() -> None:
    tree: Tree = Leaf(1.0, 1)
    for step in range(20_000):
        tree = Node(tree, 1.0, Leaf(0.001 * (step % 7), 1))
    expected = 1.0 + sum(0.001 * (step % 7) for step in range(20_000))
    assert float(total(tree)) == pytest.approx(expected, rel=1e-3)
