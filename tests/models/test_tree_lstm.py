"""TreeLSTMs on random trees: values, gradients and second derivatives against torch."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from pyrelay import Float, relay
from pyrelay.models.tree_lstm import Leaf, Node, Rooted, Tree, binary_tree_lstm, child_sum_tree_lstm
from pyrelay.prelude import List

WORDS, SIZE = 7, 5


def random_tree(chance: random.Random, leaves: int) -> Tree:
    if leaves == 1:
        return Leaf(chance.randrange(WORDS))
    split = chance.randint(1, leaves - 1)
    return Node(random_tree(chance, split), random_tree(chance, leaves - split))


def random_rooted(chance: random.Random, nodes: int) -> Rooted:
    children: list[Rooted] = []
    left = nodes - 1
    while left:
        size = chance.randint(1, left)
        children.append(random_rooted(chance, size))
        left -= size
    return Rooted(chance.randrange(WORDS), List.of(children))


@relay
def binary_loss(tree: Tree) -> Float:
    hidden, memory = binary_tree_lstm(tree, words=WORDS, size=SIZE)
    return relay.sum(hidden**2) + relay.sum(memory)


@relay
def child_sum_loss(tree: Rooted) -> Float:
    hidden, memory = child_sum_tree_lstm(tree, words=WORDS, size=SIZE)
    return relay.sum(hidden**2) + relay.sum(memory)


def linear(w: dict[str, torch.Tensor], site: str, x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, w[f"{site}.weight"], w.get(f"{site}.bias"))


def torch_binary(w: dict[str, torch.Tensor], tree: Tree) -> tuple[torch.Tensor, torch.Tensor]:
    match tree:
        case Leaf(word):
            memory, leave = linear(w, "leaf", w["x.weight"][word]).chunk(2)
            return torch.sigmoid(leave) * torch.tanh(memory), memory
        case Node(left, right):
            (h1, c1), (h2, c2) = torch_binary(w, left), torch_binary(w, right)
            entry, f1, f2, leave, new = linear(w, "gates", torch.cat((h1, h2))).chunk(5)
            memory = torch.sigmoid(entry) * torch.tanh(new)
            memory = memory + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
            return torch.sigmoid(leave) * torch.tanh(memory), memory


def torch_child_sum(w: dict[str, torch.Tensor], tree: Rooted) -> tuple[torch.Tensor, torch.Tensor]:
    states = [torch_child_sum(w, child) for child in tree.children]
    x = w["x.weight"][tree.word]
    hidden = sum((h for h, _ in states), torch.zeros(SIZE, dtype=x.dtype))
    entry, leave, new = (linear(w, "from_word", x) + linear(w, "from_children", hidden)).chunk(3)
    memory = torch.sigmoid(entry) * torch.tanh(new)
    forget_word = linear(w, "forget_word", x)
    for h, c in states:
        memory = memory + torch.sigmoid(forget_word + linear(w, "linear_1", h)) * c
    return torch.sigmoid(leave) * torch.tanh(memory), memory


def torch_loss(states: Any) -> torch.Tensor:
    hidden, memory = states
    return (hidden**2).sum() + memory.sum()


def compare(model: Any, loss: Any, tree: Any, theirs: Any) -> None:
    value, grads = relay.value_and_grad(model, loss, (tree,))
    w = {k: v.detach().clone().requires_grad_() for k, v in model.named_parameters()}
    expected = torch_loss(theirs(w, tree))
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-5)
    expected.backward()
    for name, parameter in w.items():
        wanted = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(grads[name], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("leaves", [1, 2, 3, 8, 20])
def test_the_binary_tree_lstm_is_torchs(leaves: int) -> None:
    model = relay.create_model(binary_tree_lstm, seed=1, words=WORDS, size=SIZE)
    compare(model, binary_loss, random_tree(random.Random(leaves), leaves), torch_binary)


@pytest.mark.parametrize("nodes", [1, 2, 3, 8, 20])
def test_the_child_sum_tree_lstm_is_torchs(nodes: int) -> None:
    model = relay.create_model(child_sum_tree_lstm, seed=1, words=WORDS, size=SIZE)
    compare(model, child_sum_loss, random_rooted(random.Random(nodes), nodes), torch_child_sum)


def test_two_hundred_shapes_are_one_compilation() -> None:
    chance = random.Random(0)
    model = relay.create_model(binary_tree_lstm, seed=1, words=WORDS, size=SIZE)
    before = binary_loss.cache_info().misses
    for _ in range(200):
        tree = random_tree(chance, chance.randint(1, 12))
        relay.value_and_grad(model, binary_loss, (tree,))
        model.bind(binary_loss)(tree)
    assert binary_loss.cache_info().misses - before <= 2  # one for the value, one for the gradient
