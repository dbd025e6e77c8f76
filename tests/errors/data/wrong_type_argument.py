"""A tree of numbers is not a tree of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Float, Int, Tensor, relay

T = TypeVar("T")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T


@dataclass(frozen=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]


Tree = Leaf[T] | Node[T]


@relay
def first(t: Tree[Int]) -> Int:
    return 1


@relay
def wrong(t: Tree[Tensor[Float, (3,)]]) -> Int:
    return first(Node(t, t))
