from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pyrelay import relay


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
    if isinstance(t, Leaf):
        return t.value
    assert_never(t)
