"""A TreeLSTM that scores sentences as trees, trained from a DataLoader of trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model

B = Dim("B")
WORDS, SIZE = 10, 6


@dataclass(frozen=True)
class Leaf:
    word: int


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay_model
def encode(tree: Tree) -> tuple[Tensor[Float, (SIZE,)], Tensor[Float, (SIZE,)]]:
    match tree:
        case Leaf(word):
            x = relay.embedding(word, num_embeddings=WORDS, embedding_dim=SIZE)
            i, o, u = relay.chunk(relay.linear(x, out_features=3 * SIZE, name="leaf"), 3)
            c = relay.sigmoid(i) * relay.tanh(u)
            return relay.sigmoid(o) * relay.tanh(c), c
        case Node(left, right):
            hl, cl = encode(left)
            hr, cr = encode(right)
            gates = relay.linear(relay.cat((hl, hr)), out_features=5 * SIZE, name="node")
            i, fl, fr, o, u = relay.chunk(gates, 5)
            c = relay.sigmoid(i) * relay.tanh(u) + relay.sigmoid(fl) * cl + relay.sigmoid(fr) * cr
            return relay.sigmoid(o) * relay.tanh(c), c


@relay_model
def classify(tree: Tree) -> Tensor[Float, (2,)]:
    h, _ = encode(tree)
    return relay.linear(h, out_features=2, name="out")


@relay
def loss(tree: Tree, label: Int) -> Float:
    return relay.cross_entropy(classify(tree), label)


@relay
def batch_loss(trees: list[Tree], labels: Tensor[Int, (B,)]) -> Float:
    return sum(loss(tree, label) for tree, label in zip(trees, labels)) / len(trees)


@relay
def train(model: Model[classify], data: Iterable[tuple[list[Tree], Tensor[Int, (B,)]]]) -> Float:
    total, steps = 0.0, 0
    for trees, labels in data:
        value, grads = relay.value_and_grad(model, batch_loss, (trees, labels))
        relay.update_model_params(model, grads, lr=0.1)
        total += value
        steps += 1
    return total / steps


@relay
def train_one_by_one(model: Model[classify], data: Iterable[tuple[Tree, Int]]) -> Float:
    total, steps = 0.0, 0
    for tree, label in data:
        value, grads = relay.value_and_grad(model, loss, (tree, label))
        relay.update_model_params(model, grads, lr=0.1)
        total += value
        steps += 1
    return total / steps


class Reference(torch.nn.Module):
    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.state = torch.nn.ParameterDict(
            {name.replace(".", "/"): tensor.clone() for name, tensor in state.items()}
        )

    def weight(self, name: str) -> torch.Tensor:
        return next(p for n, p in self.state.items() if n.endswith(name))

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return torch.nn.functional.linear(
            x, self.weight(f"{name}/weight"), self.weight(f"{name}/bias")
        )

    def encode(self, tree: Tree) -> tuple[torch.Tensor, torch.Tensor]:
        if isinstance(tree, Leaf):
            i, o, u = self.linear(self.weight("x/weight")[tree.word], "leaf").chunk(3)
            c = i.sigmoid() * u.tanh()
            return o.sigmoid() * c.tanh(), c
        (hl, cl), (hr, cr) = self.encode(tree.left), self.encode(tree.right)
        i, fl, fr, o, u = self.linear(torch.cat((hl, hr)), "node").chunk(5)
        c = i.sigmoid() * u.tanh() + fl.sigmoid() * cl + fr.sigmoid() * cr
        return o.sigmoid() * c.tanh(), c

    def forward(self, trees: list[Tree], labels: torch.Tensor) -> torch.Tensor:
        scores = torch.stack([self.linear(self.encode(tree)[0], "out") for tree in trees])
        return torch.nn.functional.cross_entropy(scores, labels)


def sample(seed: int) -> tuple[Tree, int]:
    generator = torch.Generator().manual_seed(seed)

    def tree(depth: int) -> Tree:
        if depth == 0 or torch.rand((), generator=generator) < 0.2:
            return Leaf(int(torch.randint(WORDS, (), generator=generator)))
        return Node(tree(depth - 1), tree(depth - 1))

    return tree(4), seed % 2


def collate(samples: list[tuple[Tree, int]]) -> tuple[list[Tree], torch.Tensor]:
    return [tree for tree, _ in samples], torch.tensor([label for _, label in samples])


def loader() -> DataLoader[Any]:
    return DataLoader([sample(i) for i in range(24)], batch_size=4, collate_fn=collate)


def train_in_a_script(model: torch.nn.Module) -> torch.Tensor:
    values: list[torch.Tensor] = []
    for trees, labels in loader():
        value, grads = relay.value_and_grad(model, batch_loss, (trees, labels))
        relay.update_model_params(model, grads, lr=0.1)
        values.append(value)
    return torch.stack(values).mean()


def train_by_torch(reference: Reference) -> torch.Tensor:
    descent = torch.optim.SGD(reference.parameters(), lr=0.1)
    values: list[torch.Tensor] = []
    for trees, labels in loader():
        descent.zero_grad()
        value = reference(trees, labels)
        value.backward()
        descent.step()
        values.append(value.detach())
    return torch.stack(values).mean()


@pytest.mark.parametrize("training", [train_in_a_script, lambda model: train(model, loader())])
def test_training_from_a_loader_of_trees_takes_the_steps_of_torch(
    training: Callable[[Any], torch.Tensor],
) -> None:
    model = relay.create_model(classify, seed=0)
    reference = Reference(model.state_dict())
    torch.testing.assert_close(training(model), train_by_torch(reference))
    for name, ours in model.state_dict().items():
        theirs = reference.state[name.replace(".", "/")].detach()
        torch.testing.assert_close(ours, theirs, msg=name)


def test_a_loader_may_give_one_tree_after_the_other() -> None:
    model = relay.create_model(classify, seed=0)
    reference = Reference(model.state_dict())
    descent = torch.optim.SGD(reference.parameters(), lr=0.1)
    values: list[torch.Tensor] = []
    for tree, label in map(sample, range(8)):
        descent.zero_grad()
        value = reference([tree], torch.tensor([label]))
        value.backward()
        descent.step()
        values.append(value.detach())
    samples: Any = [sample(i) for i in range(8)]
    one_by_one: Any = DataLoader(samples, batch_size=None)
    torch.testing.assert_close(train_one_by_one(model, one_by_one), torch.stack(values).mean())
    for name, ours in model.state_dict().items():
        theirs = reference.state[name.replace(".", "/")].detach()
        torch.testing.assert_close(ours, theirs, msg=name)
