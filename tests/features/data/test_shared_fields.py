"""A field that all classes of a union have is read without telling the classes apart."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from pyrelay import CheckError, Float, Int, relay


@dataclass(frozen=True)
class Circle:
    name: Int
    weight: Float
    radius: Float


@dataclass(frozen=True)
class Square:
    side: Float
    weight: Float
    name: Float


Shape = Circle | Square


@relay
def total(shapes: list[Shape]) -> Float:
    return sum(shape.weight * shape.weight for shape in shapes)


@relay
def named(shape: Shape) -> Float:
    return shape.name


def test_the_field_of_each_class_is_read_and_has_a_gradient() -> None:
    shapes = [Circle(1, 2.0, 3.0), Square(4.0, 5.0, 6.0)]
    assert total(shapes) == 29.0
    first, second = relay.grad(total)(shapes)
    torch.testing.assert_close(first.weight, torch.tensor(4.0))
    torch.testing.assert_close(second.weight, torch.tensor(10.0))


def test_a_field_of_different_types_is_read_of_one_class_only() -> None:
    with pytest.raises(CheckError, match="`name`"):
        named.check()


@dataclass(frozen=True)
class Leaf:
    weight: Float


@dataclass(frozen=True)
class Both:
    left: Tree
    right: Tree
    scale: Float


@dataclass(frozen=True)
class Swapped:
    right: Tree
    scale: Float
    left: Tree


@dataclass(frozen=True)
class Counted:
    left: Tree
    scale: Int


Tree = Leaf | Both | Swapped | Counted

TREE = Swapped(Leaf(2.0), 3.0, Both(Leaf(5.0), Counted(Leaf(7.0), 1), 11.0))


@relay
def folded(tree: Tree) -> Float:
    if isinstance(tree, Leaf):
        return tree.weight
    if isinstance(tree, Counted):
        return folded(tree.left)
    return tree.scale * (folded(tree.left) + folded(tree.right))


@relay
def scales(tree: Tree) -> Float:
    if isinstance(tree, (Both, Swapped)) and isinstance(tree.left, (Both, Swapped)):
        return tree.scale * tree.left.scale
    return 0.0


@relay
def depth_on_the_left(tree: Tree) -> Int:
    count = 0
    while not isinstance(tree, Leaf):
        count += 1
        tree = tree.left
    return count


@relay
def scale_of_two_types(tree: Tree) -> Float:
    if isinstance(tree, (Both, Counted)):
        return tree.scale
    return 0.0


def test_a_field_of_the_classes_that_tests_leave_is_read_and_has_a_gradient() -> None:
    assert folded(TREE) == 402.0
    change = relay.grad(folded)(TREE)
    assert isinstance(change, Swapped)
    assert change.scale == 134.0
    assert isinstance(change.left, Both)
    assert change.left.scale == 36.0


def test_a_field_of_such_a_field_is_read_after_a_test_of_it() -> None:
    assert scales(TREE) == 33.0
    assert scales(Both(Leaf(1.0), Leaf(2.0), 3.0)) == 0.0


def test_a_loop_reads_a_field_while_a_class_is_excluded() -> None:
    assert depth_on_the_left(TREE) == 2


def test_a_field_of_different_types_in_the_classes_left_is_an_error() -> None:
    with pytest.raises(CheckError, match="has no field `scale`"):
        scale_of_two_types.check()
