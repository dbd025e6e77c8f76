"""The place of a wrong value is named."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def same(t: Tree) -> Tree:
    return t


def main() -> None:
    same(Node(Leaf(1.0), Node(Leaf(2.0), Leaf("three"))))
