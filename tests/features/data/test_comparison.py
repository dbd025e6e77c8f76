"""`==` and `!=` of data, lists, tuples and optionals, against Python's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@dataclass(frozen=True)
class Leaf:
    place: tuple[int, str]


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


def same_tuples(a: tuple[int, float, str], b: tuple[int, float, str]) -> bool:
    return a == b


def other_lists(a: list[list[int]], b: list[list[int]]) -> bool:
    return a != b


def same_trees(a: Tree, b: Tree) -> bool:
    return a == b


def other_optionals(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a != b


def is_three(a: int | None, b: int) -> bool:
    return a == 3 or b == a


TREES = [Leaf((1, "a")), Leaf((1, "b")), Node(Leaf((1, "a")), Leaf((2, "a")))]
CASES: dict[Callable[..., bool], tuple[list[Any], list[Any]]] = {
    same_tuples: (TUPLES := [(1, 0.5, "x"), (2, 0.5, "x"), (1, 0.25, "x"), (1, 0.5, "y")], TUPLES),
    other_lists: (LISTS := [[], [[]], [[1, 2]], [[1], [2]], [[1, 3]]], LISTS),
    same_trees: ([*TREES, Node(TREES[0], Leaf((2, "a"))), Node(TREES[0], TREES[0])], TREES),
    other_optionals: (PAIRS := [None, (1, 2), (2, 1)], PAIRS),
    is_three: ([None, 3, 4], [3, 4]),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_whole_values_are_compared_as_in_python(function: Callable[..., bool]) -> None:
    compiled = relay(function)
    for a, b in product(*CASES[function]):
        assert compiled(a, b) is function(a, b)


def test_shapes_and_places_are_compared_as_tuples() -> None:
    @relay
    def steps(x: Tensor[Float, (N, 2)], y: Tensor[Float, (3, 2)], goal: tuple[int, int]) -> Int:
        row, column, count = 0, 0, 0
        while (row, column) != goal and x.shape == y.shape:
            row, column = column + 1, row
            count += 1
        return count

    assert steps(torch.ones(3, 2), torch.ones(3, 2), (2, 1)) == 3
    assert steps(torch.ones(4, 2), torch.ones(3, 2), (2, 1)) == 0
