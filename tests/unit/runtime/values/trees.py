"""Trees of numbers, which tests of arguments share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyrelay import Float, relay


@dataclass(frozen=True)
class Leaf:
    weight: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def total(t: Tree) -> Float:
    match t:
        case Leaf(w):
            return w
        case Node(a, b):
            return total(a) + total(b)


def full(depth: int) -> Tree:
    if not depth:
        leaf: Any = Leaf(float(depth + 1))
        return leaf
    return Node(full(depth - 1), full(depth - 1))
