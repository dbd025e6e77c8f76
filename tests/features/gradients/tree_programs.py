"""Models of trees that read rows of a table at their leaves, and optimisers of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyrelay import Any as AnySize
from pyrelay import Float, Int, Tensor, relay, relay_model

Vector = Tensor[Float, (8,)]
Table = Tensor[Float, (5_000, 8)]
Weight = Tensor[Float, (8, 8)]
Numbers = Tensor[Int, (AnySize,)]


@dataclass(frozen=True)
class Word:
    number: Int


@dataclass(frozen=True)
class Bag:
    numbers: Numbers


@dataclass(frozen=True)
class Pair:
    left: Tree
    right: Tree


Tree = Word | Bag | Pair


@relay_model
def recursive(tree: Tree) -> Vector:
    match tree:
        case Word(number):
            return relay.embedding(number, num_embeddings=5_000, embedding_dim=8, name="table")
        case Bag(numbers):
            return relay.tanh(relay.linear(relay.ones((8,)), out_features=8)) * float(len(numbers))
        case Pair(left, right):
            return relay.tanh(relay.linear(recursive(left) + recursive(right), out_features=8))


@relay
def folded(tree: Tree, table: Table, weight: Weight) -> Vector:
    match tree:
        case Word(number):
            return table[number]
        case Bag(numbers):
            return relay.embedding(numbers, table).sum(0)
        case Pair(left, right):
            return relay.tanh(weight @ (folded(left, table, weight) + folded(right, table, weight)))


@relay_model
def helped(tree: Tree) -> Vector:
    return folded(tree, relay.param((5_000, 8)), relay.param((8, 8)))


@relay
def recursive_loss(tree: Tree) -> Float:
    return (recursive(tree) ** 2).sum()


@relay
def helped_loss(tree: Tree) -> Float:
    return (helped(tree) ** 2).sum()


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: relay.optim.adam(lr=0.1, weight_decay=0.1),
    "momentum": lambda: relay.optim.sgd(0.1, 0.9, 0.1, nesterov=True),
    "descent": lambda: relay.optim.sgd(0.1),
}
