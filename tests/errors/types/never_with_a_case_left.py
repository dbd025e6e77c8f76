from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

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
        case Leaf(v):
            return v
        case Node(Leaf(v), _):
            return v
        case _:
            assert_never(t)
