"""`isinstance` of an optional: what holds where the test does is there, and of that class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
import torch

from pyrelay import Float, Int, RunError, relay


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree | None
    value: Float


Tree: TypeAlias = Leaf | Node


@dataclass(frozen=True)
class Box:
    tree: Tree | None


@relay
def size(t: Tree) -> Int:
    match t:
        case Node(left, right):
            return size(left) + (0 if right is None else size(right))
        case Leaf():
            return 1


@relay
def one_class(t: Tree | None) -> Float:
    if isinstance(t, Node):
        return t.left.value + t.value
    return 0.0


@relay
def several_classes(t: Tree | None) -> Float:
    if isinstance(t, Node | Leaf):
        return t.value
    return -1.0


@relay
def one_after_another(t: Tree | None) -> Float:
    if isinstance(t, Node):
        return t.value
    if isinstance(t, Leaf):
        return t.value * 2.0
    return 5.0 if t is None else 7.0


@relay
def passed_on(t: Tree | None) -> Int:
    if isinstance(t, Node):
        return size(t)
    return size(t) + 10 if isinstance(t, (Leaf, Node)) else 0


@relay
def walked(t: Tree | None) -> Float:
    total = 0.0
    while isinstance(t, Node):
        total += t.value
        t = t.left
    return total


@relay
def walked_to_the_right(t: Tree | None) -> Float:
    total = 0.0
    while isinstance(t, Node):
        total += t.value
        t = t.right
    return total


@relay
def given_back(t: Tree | None) -> Tree | None:
    if isinstance(t, Node):
        return t.left
    if not isinstance(t, Leaf):
        return None
    return t


def tree() -> Tree:
    return Node(Node(Leaf(1.0), None, 2.0), Node(Leaf(3.0), Leaf(4.0), 5.0), 6.0)


@pytest.mark.parametrize("t", [tree(), Leaf(3.0), None])
@pytest.mark.parametrize(
    "f",
    [
        one_class,
        several_classes,
        one_after_another,
        passed_on,
        walked,
        walked_to_the_right,
        given_back,
    ],
)
def test_an_optional_of_a_class_is_read_as_python_reads_it(f: Any, t: Tree | None) -> None:
    def plain(function: Any) -> Callable[..., Any]:
        return function.__wrapped__

    kept = size
    try:
        globals()["size"] = plain(size)
        wanted = plain(f)(t)
    finally:
        globals()["size"] = kept
    assert f(t) == wanted
    assert f.interpret(t) == wanted


@relay
def field_of_one_class(b: Box) -> Float:
    if isinstance(b.tree, Node):
        return b.tree.value
    if isinstance(b.tree, Leaf):
        return b.tree.value + 1.0
    return 0.0


@relay
def field_of_several_classes(b: Box) -> Float:
    return b.tree.value if isinstance(b.tree, Leaf | Node) else 0.5


@relay
def another_name(b: Box) -> Float:
    t = b.tree
    if isinstance(t, Leaf):
        return t.value
    if isinstance(t, Node):
        return t.value * 2.0
    return 0.0


@relay
def field_of_a_field(b: Box) -> Float:
    if isinstance(b.tree, Node) and isinstance(b.tree.right, Leaf | Node):
        return b.tree.right.value
    return 0.25


@pytest.mark.parametrize("t", [tree(), Leaf(3.0), Node(Leaf(1.0), None, 2.0), None])
@pytest.mark.parametrize(
    "f", [field_of_one_class, field_of_several_classes, another_name, field_of_a_field]
)
def test_a_field_that_is_optional_is_read_as_python_reads_it(f: Any, t: Tree | None) -> None:
    assert f(Box(t)) == f.__wrapped__(Box(t))
    assert f.interpret(Box(t)) == f.__wrapped__(Box(t))


@pytest.mark.parametrize("classes", [Leaf, (Leaf, Node)])
def test_an_assertion_tells_the_same(classes: Any) -> None:
    @relay
    def of_a_leaf(b: Box) -> Float:
        assert isinstance(b.tree, Leaf)
        return b.tree.value

    @relay
    def of_any(b: Box) -> Int:
        assert isinstance(b.tree, (Leaf, Node))
        return size(b.tree)

    f = of_a_leaf if classes is Leaf else of_any
    assert f(Box(Leaf(1.0))) == 1
    with pytest.raises(RunError):
        f(Box(None))


def test_gradients_go_through() -> None:
    @relay
    def total(t: Tree | None) -> Float:
        if isinstance(t, Node):
            return t.value * t.value + total(t.left) + total(t.right)
        return t.value * 3.0 if isinstance(t, Leaf | Node) else 0.0

    found = relay.grad(total)(tree())
    assert found == Node(
        Node(Leaf(torch.tensor(3.0)), None, torch.tensor(4.0)),
        Node(Leaf(torch.tensor(3.0)), Leaf(torch.tensor(3.0)), torch.tensor(10.0)),
        torch.tensor(12.0),
    )


@relay
def a_part_by_its_pattern(b: Box) -> Float:
    match b:
        case Box(tree):
            match tree:
                case Node(_, _, value):
                    return value
                case _:
                    return 0.5


@relay
def an_element(trees: list[Tree | None]) -> Float:
    total = 0.0
    for tree in trees:
        match tree:
            case Node(_, _, value):
                total += value
            case _:
                total += 0.5
    return total


def test_the_last_case_takes_none_too() -> None:
    trees = [Node(Leaf(1.0), None, 2.0), Leaf(3.0), None]
    assert [a_part_by_its_pattern(Box(t)).item() for t in trees] == [2.0, 0.5, 0.5]
    assert an_element(trees).item() == 3.0


@dataclass(frozen=True)
class Figure:
    width: Float
    caption: Words | None = None


@dataclass(frozen=True)
class Words:
    count: Int


Block: TypeAlias = Words | Figure


@relay
def words(block: Block) -> Int:
    match block:
        case Words(count):
            return count
        case Figure(caption=caption):
            return 0 if caption is None else words(caption)


def test_an_optional_field_names_its_union_by_one_of_the_classes() -> None:
    assert words(Figure(1.0, Words(3))) == 3
    assert words(Figure(1.0)) == 0
    assert words(Words(2)) == 2
