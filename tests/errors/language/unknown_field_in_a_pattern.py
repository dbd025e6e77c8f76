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


@relay
def total(t: Tree) -> float:
    match t:
        case Leaf(vale=v):
            return v
        case Node(left=l, middle=m):
            return total(l) + total(m)
