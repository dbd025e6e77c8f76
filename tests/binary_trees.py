"""The data type that most tests of data take: binary trees with a value in each leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T


@dataclass(frozen=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]


Tree = Leaf[T] | Node[T]
