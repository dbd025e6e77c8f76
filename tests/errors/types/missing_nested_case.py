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
def leaves(t: Tree) -> int:
    match t:
        case Leaf():
            return 1
        case Node(Node(), _):
            return 2
        case Node(Leaf(), Leaf(value=0.0)):
            return 3
