"""Tree-structured LSTMs (Tai, Socher and Manning, 2015), as recursive models over data types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..annotations import Dim, Float, Int, Tensor
from ..decorators import relay, relay_model
from ..prelude import List

H = Dim("H")


@dataclass(frozen=True)
class Leaf:
    """A word, by its number in the vocabulary."""

    word: Int


@dataclass(frozen=True)
class Node:
    """Two phrases that make one."""

    left: Tree
    right: Tree


Tree: TypeAlias = Leaf | Node


@dataclass(frozen=True)
class Rooted:
    """A word and the phrases that depend on it."""

    word: Int
    children: List[Rooted]


@relay_model
def binary_tree_lstm(
    tree: Tree, *, words: int, size: int
) -> tuple[Tensor[Float, (H,)], Tensor[Float, (H,)]]:
    """Return the hidden vector and the memory of a tree whose inner nodes have two children.

    Every child has a forget gate of its own.
    """
    match tree:
        case Leaf(word):
            x = relay.embedding(word, num_embeddings=words, embedding_dim=size)
            leaf = relay.linear(x, out_features=2 * size)
            memory = leaf[:size]
            return relay.sigmoid(leaf[size:]) * relay.tanh(memory), memory
        case Node(left, right):
            left_hidden, left_memory = binary_tree_lstm(left, words=words, size=size)
            right_hidden, right_memory = binary_tree_lstm(right, words=words, size=size)
            both = relay.cat((left_hidden, right_hidden))
            gates = relay.linear(both, out_features=5 * size)
            entry = relay.sigmoid(gates[:size])
            keep_left = relay.sigmoid(gates[size : 2 * size])
            keep_right = relay.sigmoid(gates[2 * size : 3 * size])
            leave = relay.sigmoid(gates[3 * size : 4 * size])
            candidate = relay.tanh(gates[4 * size :])
            memory = entry * candidate + keep_left * left_memory + keep_right * right_memory
            return leave * relay.tanh(memory), memory


@relay_model
def child_sum_tree_lstm(
    tree: Rooted, *, words: int, size: int
) -> tuple[Tensor[Float, (H,)], Tensor[Float, (H,)]]:
    """Return the hidden vector and the memory of a tree whose nodes have any number of children.

    Gates see the sum of the children's hidden vectors; each child is forgotten by its own.
    """
    states = relay.map(
        lambda child: child_sum_tree_lstm(child, words=words, size=size), tree.children
    )
    zero = relay.zeros((size,))
    x = relay.embedding(tree.word, num_embeddings=words, embedding_dim=size)
    hidden = relay.foldl(lambda total, state: total + state[0], zero, states)
    from_word = relay.linear(x, out_features=3 * size)
    from_children = relay.linear(hidden, out_features=3 * size, bias=False)
    gates = from_word + from_children
    entry = relay.sigmoid(gates[:size])
    leave = relay.sigmoid(gates[size : 2 * size])
    candidate = relay.tanh(gates[2 * size :])
    forget_word = relay.linear(x, out_features=size)

    def kept(
        total: Tensor[Float, (H,)], state: tuple[Tensor[Float, (H,)], Tensor[Float, (H,)]]
    ) -> Tensor[Float, (H,)]:
        forget_child = relay.linear(state[0], out_features=size, bias=False)
        return total + relay.sigmoid(forget_word + forget_child) * state[1]

    memory = entry * candidate + relay.foldl(kept, zero, states)
    return leave * relay.tanh(memory), memory
