from __future__ import annotations

from dataclasses import dataclass

from pyrelay import relay


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@dataclass(frozen=True)
class Square:
    side: float


@dataclass(frozen=True)
class Circle:
    radius: float


Shape = Square | Circle


@relay
def total(t: Tree) -> float:
    match t:
        case Leaf(v):
            return v
        case Square(side):
            return side
        case Node(l, r):
            return total(l) + total(r)
