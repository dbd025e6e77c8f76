from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Int, relay


@dataclass(frozen=True)
class Leaf:
    word: Int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def size(tree: Tree) -> int:
    if isinstance(tree, Leaf):
        return 1
    return size(tree.left) + size(tree.rigth)
