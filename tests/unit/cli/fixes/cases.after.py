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
        case Node(left, right):
            raise NotImplementedError("Node(left, right)")
        case Empty():
            raise NotImplementedError("Empty()")


@relay
def both(a: Tree, b: Tree | None) -> Float:
    match a, b:
        case Leaf(x), Leaf(y): return x + y
        case _, Empty(): return 0.0
        case _:
            raise NotImplementedError("no case for this value")
    # the end


@relay
def inner(t: Tree, xs: List[Float]) -> Float:
    match t:
        case Node(left, _):
            match xs:
                case []:
                    return total(left)
                case [_, *_]:
                    raise NotImplementedError("[_, *_]")
        case Leaf(value):
            if value > 0.0:
                return value
            return 0.0
        case Empty():
            raise NotImplementedError("Empty()")
