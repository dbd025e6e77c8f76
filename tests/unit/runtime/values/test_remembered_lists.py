"""Arguments that are lists: walked over once, and again only where they can change."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch

from pyrelay import Float, Int, RunError, relay
from tests.steps import calls_of
from tests.unit.runtime.values.trees import Leaf, Node, Tree, full, total


@relay
def added(numbers: list[Float]) -> Float:
    found = 0.0
    for number in numbers:
        found += number
    return found


@relay
def all_added(rows: list[list[Int]]) -> Int:
    found = 0
    for row in rows:
        for number in row:
            found += number
    return found


@relay
def inverse(numbers: list[Float]) -> Float:
    return 1.0 / numbers[0]


@relay
def forest(trees: list[Tree]) -> Float:
    found = 0.0
    for tree in trees:
        found += total(tree)
    return found


def test_a_list_of_numbers_is_converted_once_until_an_element_changes() -> None:
    numbers: Any = [float(n) for n in range(100)]
    assert added(numbers) == 4950.0
    assert added(list(numbers)) == 4950.0
    numbers[0] = 1.0
    assert added(numbers) == 4951.0
    numbers.append(1.0)
    assert added(numbers) == 4952.0
    numbers[1] = torch.tensor(5.0)
    assert added(numbers) == 4956.0
    numbers[1].fill_(6.0)
    assert added(numbers) == 4957.0
    numbers[1] = "1"
    with pytest.raises(RunError, match=r"numbers\[1\]"):
        added(numbers)


def test_a_list_of_equal_numbers_that_are_others_is_converted_anew() -> None:
    for zero in (0.0, -0.0, 0.0):
        assert inverse([zero]) == torch.tensor(1.0) / zero


def test_the_calls_that_check_a_list_of_numbers_do_not_grow_with_it() -> None:
    def again(size: int) -> int:
        numbers: Any = [float(n) for n in range(size)]
        count(numbers)
        return calls_of(lambda: count(numbers))

    assert again(1000) == again(10)


@relay
def count(numbers: list[Float]) -> Int:
    return len(numbers)


def test_lists_in_a_list_of_numbers_may_change_between_calls() -> None:
    rows: Any = [[1, 2], [3]]
    assert all_added(rows) == 6
    assert all_added(rows) == 6
    rows[1].append(4)
    assert all_added(rows) == 10
    rows[0][0] = 11
    assert all_added(rows) == 20
    assert all_added([[5], *rows]) == 25


def test_results_share_nothing_with_a_list_of_numbers() -> None:
    @relay
    def back(numbers: list[Float]) -> list[Float]:
        return numbers

    numbers: Any = [1.0, 2.0]
    for _ in range(3):
        result = back(numbers)
        assert [float(n) for n in result] == [1.0, 2.0]
        for number in result:
            number.zero_()


def test_large_instances_in_lists_are_walked_over_once(visited: list[Any]) -> None:
    trees = [full(3), full(4), full(2)]
    assert forest(trees) == 28.0
    assert forest(trees) == 28.0
    visited.clear()
    assert forest(trees[::-1]) == 28.0
    assert forest([trees[1]]) == 16.0
    assert visited == []
    assert forest([trees[0], full(3)]) == 16.0
    assert len(visited) == 7


def test_tensors_of_large_instances_in_lists_are_compared_again() -> None:
    weight = torch.tensor(2.0)
    tree = Node(full(3), Leaf(weight))
    for _ in range(3):
        assert forest([tree, full(3)]) == 18.0
    weight.fill_(3.0)
    assert forest([tree, full(3)]) == 19.0
    weight.requires_grad_()
    forest([full(3), tree]).backward()
    assert weight.grad == 1.0
    weight.requires_grad_(False)
    weight.data = torch.ones(2)
    with pytest.raises(RunError, match=r"trees\[1\]\.right\.weight"):
        forest([full(3), tree])


@pytest.mark.usefixtures("frozen_heap")
def test_lists_of_instances_are_not_kept() -> None:
    for depth in (1, 3):
        trees = [full(depth), full(depth)]
        forest(trees)
        forest(trees)
        gone = [weakref.ref(tree) for tree in trees]
        del trees
        gc.collect()
        assert [reference() for reference in gone] == [None, None]
