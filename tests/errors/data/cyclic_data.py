"""A value is not a part of itself."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Node:
    value: Float
    next: Node | None


@relay
def same(n: Node) -> Node:
    return n


def main() -> None:
    node = Node(1.0, None)
    object.__setattr__(node, "next", node)
    same(node)
