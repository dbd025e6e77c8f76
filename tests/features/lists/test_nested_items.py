"""Items of items assigned, `table[i][j] = x`: values as in Python, and refusals where rows may be
shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, Tensor, relay

N, M = Dim("N"), Dim("M")


def edit_distance(a: list[Int], b: list[Int]) -> Int:
    table = [[0 for _ in range(len(b) + 1)] for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        table[i][0] = i
    for j in range(len(b) + 1):
        table[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + cost)
    return table[len(a)][len(b)]


def rows_copied(xs: list[Float], ys: list[Float]) -> Float:
    rows = [xs, ys]
    table = [list(row) for row in rows]
    table[0][0] = table[0][1] * 2.0
    table.append([1.0, 2.0])
    table[-1][0] += 8.0
    total = 0.0
    for row in table:
        total = total * 0.5 + sum(row)
    first = table[0][0]
    table[0][0] = 3.0
    table[0], table[1] = table[1], table[0]
    table[0][1] = first
    return total + sum(table[0]) + 10.0 * sum(table[1])


def neighbours(sources: list[Int], targets: list[Int]) -> Int:
    found = [[0] for _ in range(4)]
    for source, target in zip(sources, targets):
        found[source].append(target)
        found[target] += [source]
    return sum([len(row) * row[-1] for row in found])


def cube(a: list[Int], b: list[Int]) -> Int:
    cube = [[[0 for _ in range(2)] for _ in a] for _ in b]
    cube[1][0][1] = a[0]
    cube[0][1] = [7, 8]
    cube[0][1][0] -= b[0]
    return sum([sum([sum(row) * i for i, row in enumerate(part)]) for part in cube]) + cube[1][0][1]


INTS = ([1, 2, 3], [2, 3, 1])
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (edit_distance, ([1, 2, 3, 4], [2, 3, 5, 4, 6])),
    (rows_copied, ([1.0, 2.0], [3.0, 4.0])),
    (neighbours, INTS),
    (cube, INTS),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_items_of_items_are_assigned_as_in_python(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    expected = function(*arguments)
    compiled = relay(function)
    assert compiled(*arguments) == expected
    assert compiled.interpret(*arguments) == expected


@relay
def weighted(x: Float) -> Float:
    table = [[x, x] for _ in range(2)]
    for i in range(2):
        table[i][0] = table[i][1] * 3.0
    table[1][1] *= x
    return sum([sum(row) for row in table])


def test_gradients_go_through_items_of_items() -> None:
    assert weighted(2.0) == 18.0
    assert relay.grad(weighted)(2.0) == 3.0 + 3.0 + 1.0 + 4.0


@relay
def in_a_tensor(x: Tensor[Float, (N, M)]) -> Tensor[Float, (N, M)]:
    y = x.clone()
    y[0][1] = 5.0
    y[1][0:2] = 7.0
    y[1][1] *= 2.0
    return y


def test_items_of_rows_of_a_tensor_are_assigned() -> None:
    assert in_a_tensor(torch.ones(2, 3)).tolist() == [[1.0, 5.0, 1.0], [7.0, 14.0, 1.0]]


def repeated(x: Float) -> Float:
    table = [[x]] * 2
    table[0][0] = 1.0
    return table[1][0]


def one_row_twice(x: Float) -> Float:
    row = [x]
    table = [row, row]
    table[0][0] = 1.0
    return table[1][0]


def named(x: Float) -> Float:
    table = [[x], [x]]
    row = table[0]
    table[0][0] = 1.0
    return row[0]


def named_in_a_loop(x: Float) -> Float:
    table = [[x], [x]]
    total = 0.0
    for row in table:
        table[1][0] = 1.0
        total += row[0]
    return total


def put_into_two_places(x: Float) -> Float:
    table = [[x], [x]]
    table[1] = table[0]
    table[0][0] = 1.0
    return table[1][0]


def appended(x: Float) -> Float:
    table = []
    row = [x]
    table.append(row)
    table[0][0] = 1.0
    return row[0]


def extended(x: Float) -> Float:
    table = [[x], [x]]
    row = table[0]
    table[0] += [1.0]
    return sum(row)


def appended_to(x: Float) -> Float:
    table = [[x]] * 2
    table[0].append(1.0)
    return sum(table[1])


def kept_by_a_comprehension(x: Float) -> Float:
    table = [[x], [x]]
    rows = [row for row in table if len(row) == 1]
    table[0][0] = 1.0
    return rows[0][0]


def made_elsewhere(x: Float) -> Float:
    def twice(row):
        return [row, row]

    table = twice([x])
    table[0][0] = 1.0
    return table[1][0]


SHARED = [
    appended,
    appended_to,
    extended,
    kept_by_a_comprehension,
    made_elsewhere,
    named,
    named_in_a_loop,
    one_row_twice,
    put_into_two_places,
    repeated,
]


@pytest.mark.parametrize("function", SHARED, ids=lambda f: f.__name__)
def test_a_row_that_is_held_elsewhere_is_not_changed(function: Callable[..., Any]) -> None:
    with pytest.raises(CheckError) as caught:
        relay(function).check()
    assert "RL174" in caught.value.codes
