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
def pairs(a: Tree, b: Tree | None) -> int:
    match a, b:
        case Leaf(), Leaf():
            return 1
