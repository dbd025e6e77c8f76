"""Which class a value has is asked first."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Leaf:
    value: Float
    weight: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def weight(t: Tree) -> Float:
    return t.weight
