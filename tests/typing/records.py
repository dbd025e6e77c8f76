"""Data types of the user: checkers see plain dataclasses and miss no case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Leaf:
    """A number."""

    value: Float


@dataclass(frozen=True)
class Node:
    """Two trees."""

    left: Tree
    right: Tree


Tree: TypeAlias = Leaf | Node


@dataclass(frozen=True)
class Point:
    """A record."""

    x: Tensor[Float, (3,)]
    weight: float = 1.0


@relay
def total(tree: Tree) -> Float:
    match tree:
        case Leaf(value):
            return value
        case Node(left, right):
            return total(left) + total(right)


@relay
def weighted(p: Point) -> Float:
    return p.x.sum() * p.weight


print(total(Node(Leaf(1.0), Node(Leaf(2.0), Leaf(3.0)))).item())
