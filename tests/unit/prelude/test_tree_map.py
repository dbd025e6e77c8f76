"""`relay.tree_map` over data types, lists and tuples, in programs and in scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, Int, RunError, Tensor, relay
from pyrelay.prelude import List


@dataclass(frozen=True)
class Leaf:
    weight: Tensor[Float, (2,)]
    number: Int


@dataclass(frozen=True)
class Node:
    left: Tree
    bias: Float
    right: Tree


Tree = Leaf | Node


@relay
def energy(tree: Tree) -> Float:
    match tree:
        case Leaf(weight, number):
            return (weight * weight).sum() * number
        case Node(left, bias, right):
            return energy(left) + bias * bias * energy(right)


@relay
def descended(tree: Tree, rate: Float) -> Tree:
    return relay.tree_map(lambda p, g: p - rate * g, tree, relay.grad(energy)(tree))


@relay
def halved(tree: Tree) -> Float:
    return energy(relay.tree_map(lambda p: 0.5 * p, tree))


def sample() -> Any:
    return Node(Leaf(torch.ones(2), 3), torch.tensor(2.0), Leaf(torch.tensor([1.0, 3.0]), 4))


def test_leaves_of_several_types_are_mapped_and_integers_stay() -> None:
    for run in (descended, descended.interpret):
        found = run(sample(), 0.1)
        torch.testing.assert_close(found.left.weight, torch.ones(2) * 0.4)
        torch.testing.assert_close(found.bias, torch.tensor(2.0 - 0.1 * 4 * 40.0))
        assert int(found.right.number) == 4


def test_a_map_is_differentiated() -> None:
    gradient = relay.grad(halved)(sample())
    torch.testing.assert_close(gradient.left.weight, torch.ones(2) * 3 * 0.5)
    assert int(gradient.left.number) == 0


@relay
def added(xs: List[Float], ys: List[Float]) -> List[Float]:
    return relay.tree_map(lambda x, y: x + y, xs, ys)


def test_lists_are_mapped_at_any_length() -> None:
    found = added([1.0] * 20_000, [2.0] * 20_000)
    assert len(found) == 20_000
    assert float(found[-1]) == 3.0


def test_trees_of_different_structure_stop_the_program() -> None:
    for run in (added, added.interpret):
        with pytest.raises(RunError, match="the trees have different structures"):
            run([1.0], [2.0, 3.0])


def test_tuples_are_mapped_field_by_field() -> None:
    @relay
    def doubled(a: Float, b: Tensor[Float, (2,)]) -> tuple[Float, tuple[Tensor[Float, (2,)], Int]]:
        return relay.tree_map(relay.tanh, (a, (b, 3)))

    found = doubled(1.0, torch.ones(2))
    torch.testing.assert_close(found[0], torch.tanh(torch.tensor(1.0)))
    torch.testing.assert_close(found[1][0], torch.tanh(torch.ones(2)))
    assert int(found[1][1]) == 3


def test_trees_of_different_types_are_refused() -> None:
    @relay
    def mixed(tree: Tree, xs: List[Float]) -> Tree:
        return relay.tree_map(lambda a, b: a, tree, xs)

    with pytest.raises(CheckError, match="takes trees of one type"):
        mixed.check()


def test_scripts_map_trees_too() -> None:
    found = relay.tree_map(lambda a, b: a + b, sample(), sample())
    torch.testing.assert_close(found.right.weight, torch.tensor([2.0, 6.0]))
    assert found.right.number == 4
    assert relay.tree_map(lambda x: 2 * x, [torch.ones(2)]) == [2 * torch.ones(2)]
    with pytest.raises(RunError, match="trees of one structure"):
        relay.tree_map(lambda a, b: a, [torch.ones(1)], [torch.ones(1), torch.ones(1)])


@pytest.mark.parametrize(
    ("tree", "other"),
    [
        ([[1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0]]),
        (Node(sample(), 1.0, Leaf(torch.ones(2), 1)), Node(Leaf(torch.ones(2), 1), 1.0, sample())),
        ((1.0, 2.0), [1.0, 2.0]),
    ],
    ids=["lists", "data", "a tuple and a list"],
)
def test_scripts_do_not_mix_trees_with_equally_many_leaves(tree: Any, other: Any) -> None:
    with pytest.raises(RunError, match="trees of one structure"):
        relay.tree_map(lambda a, b: a + b, tree, other)


def test_a_script_maps_floats_in_lists_and_data_as_a_program_does() -> None:
    assert relay.tree_map(lambda x, y: x + y, [1.0, 2.0], [0.5, 0.5]) == [1.5, 2.5]
    assert relay.tree_map(lambda x: 2.0 * x, Node(Leaf(1.5, 3), 2.0, Leaf(1.0, 3))) == Node(
        Leaf(3.0, 3), 4.0, Leaf(2.0, 3)
    )
