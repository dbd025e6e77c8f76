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
