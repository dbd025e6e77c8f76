"""Arguments and results that are data: walked over once, and again only where they can change."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay
from pyrelay.prelude import List
from tests.steps import calls_of
from tests.unit.runtime.values.trees import Leaf, Node, Tree, total


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Add:
    left: Expr
    right: Expr


Expr = Number | Add


@relay
def value(e: Expr) -> int:
    match e:
        case Number(n):
            return n
        case Add(a, b):
            return value(a) + value(b)


@relay
def mirrored(e: Expr) -> Expr:
    match e:
        case Number():
            return e
        case Add(a, b):
            return Add(mirrored(b), mirrored(a))


@relay
def same(t: Tree) -> Tree:
    return t


@dataclass(frozen=True)
class Vector:
    weights: Tensor[Float, (2,)]
    name: str
    flag: bool


@dataclass(frozen=True)
class Pair:
    left: Vector
    right: Vector
    rest: Pair | None


@relay
def norm(p: Pair) -> Float:
    found = p.left.weights @ p.right.weights
    return found if p.rest is None else found + norm(p.rest)


@dataclass(frozen=True)
class Row:
    weights: List[Float]


@relay
def first(row: Row) -> Float:
    return row.weights[0]


def test_an_instance_is_walked_over_once(visited: list[Any]) -> None:
    e = Add(Number(1), Add(Number(2), Number(3)))
    assert value(e) == 6
    assert len(visited) == 2
    assert value(e) == 6
    assert len(visited) == 2


def test_a_part_that_stands_in_two_places_is_walked_over_once(visited: list[Any]) -> None:
    e: Expr = Number(1)
    for _ in range(30):
        e = Add(e, e)
    largest = e

    @relay
    def leftmost(e: Expr) -> int:
        match e:
            case Number(n):
                return n
            case Add(a, _):
                return leftmost(a)

    assert leftmost(largest) == 1
    assert len(visited) == 30


def test_the_calls_that_check_an_instance_do_not_grow_with_what_is_known() -> None:
    def comb(size: int) -> Expr:
        e: Expr = Number(0)
        for number in range(size):
            e = Add(e, Number(number))
        return e

    def again(size: int) -> int:
        e = comb(size)
        is_sum(e)
        return calls_of(lambda: is_sum(e))

    assert again(1000) == again(10)


@relay
def is_sum(e: Expr) -> bool:
    return isinstance(e, Add)


def test_parts_that_were_seen_are_not_walked_over_in_a_new_instance(visited: list[Any]) -> None:
    part = Add(Number(1), Number(2))
    value(part)
    visited.clear()
    assert value(Add(part, Number(4))) == 7
    assert len(visited) == 1


def test_a_result_given_back_is_not_walked_over(visited: list[Any]) -> None:
    e = Add(Number(1), Add(Number(2), Number(3)))
    once = mirrored(e)
    visited.clear()
    assert mirrored(once) == e
    assert visited == []


def test_tensors_of_fixed_sizes_are_walked_over_once_and_compared_again(
    visited: list[Any],
) -> None:
    row = Vector(torch.ones(2), "row", flag=True)
    assert norm(Pair(row, row, None)) == 2.0
    assert len(visited) == 1
    assert norm(Pair(row, row, Pair(row, row, None))) == 4.0
    row.weights.data = torch.ones(3)
    for _ in range(2):
        with pytest.raises(RunError, match=r"p\.left\.weights"):
            norm(Pair(row, row, None))
    row.weights.data = torch.zeros(2)
    assert norm(Pair(row, row, None)) == 0.0
    for mode in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu")):
        with mode:
            assert norm(Pair(row, row, None)) == 0.0
    row.weights.requires_grad_()
    assert norm(Pair(row, row, None)).requires_grad


M, N = Dim("M"), Dim("N")


@dataclass(frozen=True)
class Line:
    x: Tensor[Float, (N,)]
    y: Tensor[Float, (N,)]
    scale: Float


@relay
def dotted(line: Line) -> Float:
    return line.scale * relay.sum(line.x * line.y)


@relay
def summed(line: Line, x: Tensor[Float, (M,)], z: Tensor[Float, (M,)]) -> Float:
    return dotted(line) + relay.sum(x * z)


def test_tensors_with_sizes_of_their_own_are_walked_over_once_and_compared_again(
    visited: list[Any],
) -> None:
    line = Line(torch.ones(2), torch.ones(2), 2.0)
    for _ in range(2):
        visited.clear()
        assert dotted(line) == 4.0
        assert summed(line, torch.ones(5), torch.ones(5)) == 9.0
    assert visited == []
    line.x.data = torch.ones(3)
    for _ in range(2):
        with pytest.raises(RunError, match=r"line\.y"):
            dotted(line)
        with pytest.raises(RunError, match=r"line\.y"):
            summed(line, torch.ones(5), torch.ones(5))
    line.y.data = torch.ones(3)
    for _ in range(2):
        assert dotted(line) == 6.0
    line.y.requires_grad_()
    assert dotted(line).requires_grad
    with pytest.raises(RunError, match=r"float64"):
        dotted(Line(line.x.double(), line.y, 2.0))


def test_results_share_nothing_with_numbers_that_were_converted_at_once() -> None:
    t: Any = Node(Leaf(1.0), Node(Leaf(2.0), Leaf(3.0)))
    result: Any = same(t)
    result.left.weight.zero_()
    result.right.left.weight.zero_()
    assert total(t) == 6.0
    again: Any = same(t)
    assert again.left.weight == 1.0


@pytest.mark.usefixtures("frozen_heap")
def test_what_is_remembered_goes_with_the_instance() -> None:
    e = Add(Number(1), Number(2))
    value(e)
    gone = [weakref.ref(e), weakref.ref(e.left)]
    del e
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    for number in range(200):  # new instances take the places of old ones
        assert value(Add(Number(number), Number(1))) == number + 1


def test_a_number_that_is_converted_once_is_the_same_in_each_call() -> None:
    t: Any = Node(Leaf(1.5), Leaf(torch.tensor(2.0)))
    for _ in range(3):
        assert total(t) == 3.5
        assert relay.grad(total)(t).left.weight == 1.0
        result: Any = same(t)
        result.right.weight.zero_()
        result.left.weight.zero_()
    assert t.right.weight == 2.0
    assert total(t) == 3.5


def test_a_tensor_that_changes_in_place_is_seen() -> None:
    weight = torch.tensor(2.0)
    t = Node(Leaf(weight), Leaf(torch.tensor(1.0)))
    assert total(t) == 3.0
    weight.fill_(4.0)
    assert total(t) == 5.0
    weight.requires_grad_()
    assert total(t).requires_grad
    weight.requires_grad_(False)
    weight.data = torch.ones(3)
    with pytest.raises(RunError, match=r"t\.left\.weight"):
        total(t)
    weight.data = torch.tensor(1.0, dtype=torch.float64)
    with pytest.raises(RunError, match=r"t\.left\.weight"):
        total(t)
    weight.data = torch.tensor(7.0)
    assert total(t) == 8.0


def test_a_list_in_an_instance_may_change_between_calls() -> None:
    weights: Any = [torch.tensor(1.0)]
    row = Row(weights)
    assert first(row) == 1.0
    weights[0] = torch.tensor(5.0)
    assert first(row) == 5.0
    weights[0] = torch.ones(2)
    with pytest.raises(RunError):
        first(row)


def test_an_instance_with_a_list_is_walked_over_where_the_list_has_changed(
    visited: list[Any],
) -> None:
    weights: Any = [torch.tensor(1.0), 2.0]
    row = Row(weights)
    for _ in range(3):
        assert first(row) == 1.0
    assert visited == [id(row)]
    weights[1] = 3.0
    assert first(row) == 1.0
    assert visited == [id(row)] * 2
    weights.append(4.0)
    assert first(row) == 1.0
    assert visited == [id(row)] * 3
    weights[0].data = torch.ones(2)
    with pytest.raises(RunError, match=r"row\.weights\[0\]"):
        first(row)


def test_results_share_nothing_with_a_list_that_is_remembered() -> None:
    @relay
    def back(row: Row) -> Row:
        return row

    row = Row([1.0, torch.tensor(2.0)])
    for _ in range(3):
        result = back(row)
        assert [float(w) for w in result.weights] == [1.0, 2.0]
        for weight in result.weights:
            weight.zero_()


@dataclass(frozen=True)
class Table:
    rows: list[tuple[Int, Float]]


@relay
def weighed(table: Table, x: Tensor[Float, (2,)], scale: Float) -> Float:
    found = 0.0
    for count, weight in table.rows:
        found += count * weight * scale
    return found + x.sum()


def test_calls_with_data_are_direct_and_see_what_has_changed() -> None:
    rows: Any = [(1, 2.0), (3, torch.tensor(4.0))]
    table, x = Table(rows), torch.ones(2)
    weighed(table, x, 1.0)
    calls = calls_of(lambda: weighed(table, x, 1.0))
    assert weighed.cache_info().hits >= 1
    assert calls < 80
    assert weighed(table, x, 1.0) == 16.0
    assert weighed(table=table, x=x * 2, scale=torch.tensor(2.0)) == 32.0
    rows[0] = (5, 2.0)
    assert weighed(table, x, 1.0) == 24.0
    weight = torch.tensor(1.0, requires_grad=True)
    rows[0] = (1, weight)
    weighed(table, x, 1.0).backward()
    assert weight.grad == 1.0
    rows[0] = (1.5, 2.0)
    with pytest.raises(RunError, match=r"table\.rows\[0\]"):
        weighed(table, x, 1.0)
    rows[0] = (1, 2.0)
    with pytest.raises(RunError, match="`x`"):
        weighed(table, torch.ones(3), 1.0)


def test_programs_that_take_a_class_differently_remember_apart() -> None:
    @dataclass(frozen=True)
    class Counted:
        count: Int

    @relay
    def back(c: Counted) -> Counted:
        return c

    @relay
    def number(c: Counted) -> Int:
        return c.count

    given: Any = Counted(3)
    for _ in range(2):
        assert number(given) == 3
        result = back(given)
        assert isinstance(result.count, torch.Tensor)
        assert isinstance(back(result).count, torch.Tensor)
