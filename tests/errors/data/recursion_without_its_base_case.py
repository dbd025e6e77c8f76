from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Int, relay, relay_model


@dataclass(frozen=True)
class Leaf:
    word: Int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay_model
def code(tree: Tree):
    match tree:
        case Node(left, right):
            return relay.tanh(relay.linear(relay.cat((code(left), code(right))), out_features=3))
