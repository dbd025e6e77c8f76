"""The program: a TreeLSTM that tells whether a condition is true, and what it is compared with."""

from pyrelay import Float, Int, Tensor, relay, relay_model
from pyrelay.models.tree_lstm import Tree, binary_tree_lstm


@relay_model
def classifier(tree: Tree, *, words: int = 6, size: int = 32) -> Tensor[Float, (2,)]:
    """Return the scores of false and true for a tree."""
    hidden, _ = binary_tree_lstm(tree, words=words, size=size)
    return relay.linear(hidden, out_features=2)


@relay
def loss(tree: Tree, holds: Int) -> Float:
    """Return the cross entropy of one tree."""
    return relay.softmax_cross_entropy(classifier(tree).unsqueeze(0), holds.unsqueeze(0))


@relay_model
def bag_of_leaves(counts: Tensor[Float, (6,)], *, size: int = 32) -> Tensor[Float, (2,)]:
    """Return the scores of a bag of words: a baseline that ignores the structure."""
    hidden = relay.tanh(relay.linear(counts, out_features=size))
    return relay.linear(hidden, out_features=2)


@relay
def bag_loss(counts: Tensor[Float, (6,)], holds: Int) -> Float:
    """Return the cross entropy of one bag."""
    return relay.softmax_cross_entropy(bag_of_leaves(counts).unsqueeze(0), holds.unsqueeze(0))
