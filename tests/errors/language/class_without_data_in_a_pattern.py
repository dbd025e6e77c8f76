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


class Pair:
    first: int


@relay
def total(t: Tree) -> float:
    match t:
        case Pair(first=x):
            return x
        case Missing():
            return 0.0
        case float(x):
            return x
        case _:
            return 1.0
