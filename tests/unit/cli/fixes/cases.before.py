"""Matches that leave out cases."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay
from pyrelay.prelude import List


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Empty:
    pass


Tree = Leaf | Node | Empty


@relay
def total(t: Tree) -> Float:
    match t:
        # a leaf is what it holds
        case Leaf(value):
            return value  # as it is


@relay
def both(a: Tree, b: Tree | None) -> Float:
    match a, b:
        case Leaf(x), Leaf(y): return x + y
        case _, Empty(): return 0.0
    # the end


@relay
def inner(t: Tree, xs: List[Float]) -> Float:
    match t:
        case Node(left, _):
            match xs:
                case []:
                    return total(left)
        case Leaf(value):
            if value > 0.0:
                return value
            return 0.0
