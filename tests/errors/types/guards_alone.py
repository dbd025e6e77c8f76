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
def sign(t: Tree) -> int:
    match t:
        case Leaf(v) if v > 0.0:
            return 1
        case Leaf(v) if v <= 0.0:
            return -1
        case Node():
            return 0
