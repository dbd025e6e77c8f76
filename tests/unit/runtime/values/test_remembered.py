"""Arguments and results that are data: walked over once, and again only where they can change."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Float, Int, RunError, relay
from pyrelay.prelude import List
from pyrelay.runtime.border import arguments
from pyrelay.runtime.border.arguments import plain_data


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


@dataclass(frozen=True)
class Leaf:
    weight: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def total(t: Tree) -> Float:
    match t:
        case Leaf(w):
            return w
        case Node(a, b):
            return total(a) + total(b)


@relay
def same(t: Tree) -> Tree:
    return t


@dataclass(frozen=True)
class Row:
    weights: List[Float]


@relay
def first(row: Row) -> Float:
    return row.weights[0]


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note the instances with data in them whose fields are read in a check of arguments."""
    found: list[Any] = []

    def noted(value: Any, plan: Any, device: torch.device) -> Any:
        plain = plain_data(value, plan, device)
        found.extend([value] * 100 if plain is None else plain.instances)
        return plain

    monkeypatch.setattr(arguments, "plain_data", noted)
    return found


def test_an_instance_is_walked_over_once(visited: list[Any]) -> None:
    e = Add(Number(1), Add(Number(2), Number(3)))
    assert value(e) == 6
    assert len(visited) == 2
    assert value(e) == 6
    assert len(visited) == 2


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
