from __future__ import annotations

from dataclasses import dataclass

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
def total(t: Tree, n: int) -> float:
    match n:
        case "one":
            return 1.0
        case True:
            return 2.0
        case 1.5:
            return 3.0
        case _:
            return 4.0
