"""Recursive models over trees: gradients of parameters, updates, export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pyrelay import Float, Tensor, relay, relay_model


@dataclass(frozen=True)
class Leaf:
    word: int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay_model
def encode(t: Tree) -> Tensor[Float, (4,)]:
    match t:
        case Leaf(word):
            return relay.embedding(word, num_embeddings=10, embedding_dim=4)
        case Node(left, right):
            both = relay.cat((encode(left), encode(right)), dim=0)
            return relay.tanh(relay.linear(both, out_features=4))


@relay
def loss(t: Tree) -> Float:
    return (encode(t) ** 2).sum()


TREES: Any = (
    Node(Node(Leaf(1), Leaf(2)), Leaf(3)),
    Leaf(7),
    Node(Leaf(4), Node(Node(Leaf(1), Leaf(1)), Node(Leaf(5), Leaf(6)))),
)


def by_hand(model: Any, t: Any) -> torch.Tensor:
    """Return what the model computes, written with torch."""
    weights = dict(model.named_parameters())
    if isinstance(t, Leaf):
        return weights["embedding_1.weight"][t.word]
    both = torch.cat((by_hand(model, t.left), by_hand(model, t.right)))
    linear = torch.nn.functional.linear
    return torch.tanh(linear(both, weights["linear_1.weight"], weights["linear_1.bias"]))


def test_gradients_of_a_recursive_model_equal_torchs() -> None:
    model = relay.create_model(encode, seed=0)
    names = [n for n, _ in model.named_parameters()]
    for t in TREES:
        value, grads = relay.value_and_grad(model, loss, (t,))
        expected = by_hand(model, t).pow(2).sum()
        inputs = [p for _, p in model.named_parameters()]
        found = torch.autograd.grad(expected, inputs, allow_unused=True)
        torch.testing.assert_close(value, expected.detach())
        for name, theirs in zip(names, found, strict=True):
            wanted = torch.zeros_like(grads[name]) if theirs is None else theirs
            torch.testing.assert_close(grads[name], wanted)


def test_a_recursive_model_is_trained_and_exported() -> None:
    model = relay.create_model(encode, seed=1)
    first, _ = relay.value_and_grad(model, loss, (TREES[0],))
    for _ in range(20):
        _, grads = relay.value_and_grad(model, loss, (TREES[0],))
        relay.update_model_params(model, grads, lr=0.05)
    last, _ = relay.value_and_grad(model, loss, (TREES[0],))
    assert last < first / 2
    exported = relay.export_model(model)
    for t in TREES:
        torch.testing.assert_close(exported(t), model(t).detach())
