from __future__ import annotations

from dataclasses import dataclass

from pyrelay import CheckError, relay


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
        case Leaf(v) | Node(Leaf(v), _):
            return v
        case Node(_, Leaf(v)):
            return v
        case Node(Leaf(_), Leaf(v)):
            return 2.0 * v
        case Node():
            return 3.0
        case _:
            return 4.0


def main() -> None:
    raise CheckError(*total.check().warnings)
