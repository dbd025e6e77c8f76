from dataclasses import dataclass

import torch

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Leaf:
    value: Tensor[Float, (4,)]


@dataclass(frozen=True)
class Node:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


@relay
def same(t: Tree) -> Tree:
    return t


def main() -> None:
    same(Node(Leaf(torch.ones(4)), Node(Leaf(torch.ones(1, 4)), Leaf(torch.ones(4)))))
