"""The members of a union are classes."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Leaf:
    value: Float


Tree = Leaf | int


@relay
def same(t: Tree) -> Tree:
    return t
