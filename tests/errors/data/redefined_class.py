"""A class is defined again, and the union still names the one of before."""

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


@dataclass(frozen=True)
class Leaf:  # noqa: F811
    value: Float
    weight: Float


@relay
def same(t: Tree) -> Tree:
    return t
