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
    if isinstance(t, Pair):
        return 1.0
    if isinstance(t, total):
        return 2.0
    return 0.0
