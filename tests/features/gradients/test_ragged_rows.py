"""Gradients that loops over trees, and over batches of different sizes, add up are rows of the
table up to the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, options, relay, relay_model
from tests.features.gradients.tree_programs import (
    OPTIMIZERS,
    Bag,
    Numbers,
    Pair,
    Tree,
    Vector,
    Word,
    helped,
    helped_loss,
    recursive,
    recursive_loss,
)

N = Dim("N")


@relay_model
def summed(bags: list[Numbers]) -> Vector:
    table, total = relay.param((5_000, 8)), relay.zeros((8,))
    for numbers in bags:
        total = relay.tanh(total + relay.embedding(numbers, table).sum(0) + table[numbers[0]])
    return total


@relay_model
def flat(numbers: Tensor[Int, (N,)]) -> Vector:
    return relay.embedding(numbers, num_embeddings=5_000, embedding_dim=8).sum(0)


@relay
def summed_loss(bags: list[Numbers]) -> Float:
    return (summed(bags) ** 2).sum()


@relay
def flat_loss(numbers: Tensor[Int, (N,)]) -> Float:
    return (flat(numbers) ** 2).sum()


@relay
def over_trees(model: Model[recursive], optimizer: Optimizer, trees: list[Tree]) -> Float:
    total, grads = relay.value_and_grad(model, recursive_loss, (trees[0],))
    for tree in trees[1:]:
        value, more = relay.value_and_grad(model, recursive_loss, (tree,))
        grads = grads + more * 0.5
        total += value
    relay.update_model_params(model, grads, optimizer=optimizer)
    return total


@relay
def twice_over_trees(model: Model[recursive], optimizer: Optimizer, trees: list[Tree]) -> Float:
    grads = relay.grad(model, recursive_loss, (trees[0],))
    for _ in range(2):
        for tree in trees[1:]:
            grads = grads + relay.grad(model, recursive_loss, (tree,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return grads.norm()


@relay
def over_rows(model: Model[helped], optimizer: Optimizer, trees: list[Tree]) -> Float:
    total, grads = relay.value_and_grad(model, helped_loss, (trees[0],))
    for tree in trees[1:]:
        value, more = relay.value_and_grad(model, helped_loss, (tree,))
        if value > 0.0:
            grads = grads + more
            total += value
    relay.update_model_params(model, grads, optimizer=optimizer)
    return total


@relay
def inside(model: Model[summed], optimizer: Optimizer, bags: list[Numbers]) -> Float:
    value, grads = relay.value_and_grad(model, summed_loss, (bags,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def over_bags(model: Model[flat], optimizer: Optimizer, bags: list[Numbers]) -> Float:
    total, grads = relay.value_and_grad(model, flat_loss, (bags[0],))
    for numbers in bags[1:]:
        value, more = relay.value_and_grad(model, flat_loss, (numbers,))
        grads = grads + more
        total += value
    relay.update_model_params(model, grads, optimizer=optimizer)
    return total


def bag(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


TREES = (
    Pair(Pair(Word(3), Word(4_999)), Pair(Word(3), Word(0))),
    Word(7),
    Pair(Word(7), Pair(Bag(bag(8, 9, 8)), Word(7))),
)
BAGS = (bag(3, 7, 3), bag(1), bag(9, 9, 3, 0))
Grad = Callable[[Any], Any]


def added(grad: Grad, values: Any, weight: float = 1.0) -> Any:
    return sum((grad(v) * weight for v in values[1:]), grad(values[0]))


PROGRAMS: dict[str, tuple[Any, Any, Any, Any, Callable[[Grad, Any], Any]]] = {
    "over trees": (recursive, recursive_loss, over_trees, TREES, lambda g, v: added(g, v, 0.5)),
    "twice over trees": (
        recursive,
        recursive_loss,
        twice_over_trees,
        TREES,
        lambda g, v: added(g, [*v, *v[1:]]),
    ),
    "over rows": (helped, helped_loss, over_rows, TREES, added),
    "inside": (summed, summed_loss, inside, BAGS, lambda g, v: g(v)),
    "over bags": (flat, flat_loss, over_bags, BAGS, added),
}


@pytest.mark.parametrize(
    ("name", "lowering"),
    [("adam", "c"), ("descent", "c"), ("momentum", "torch"), ("descent", "torch-regions")],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_they_step_as_the_dense_gradients_do(
    program: str, name: str, lowering: str, caplog: pytest.LogCaptureFixture
) -> None:
    definition, loss, step, values, gradient = PROGRAMS[program]
    own, theirs = OPTIMIZERS[name](), OPTIMIZERS[name]()
    model, other = (relay.create_model(definition, seed=0) for _ in range(2))
    storage = [p.data_ptr() for p in model.parameters()]
    for each in (values, values[::-1]):
        with options(lowering=lowering):
            step(model, own, each)
        with options(lowering="torch"):
            grads = gradient(lambda v: relay.grad(other, loss, (v,)), each)
        relay.update_model_params(other, grads, optimizer=theirs)
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    torch.testing.assert_close(own.state_dict(model), theirs.state_dict(other))
    assert [p.data_ptr() for p in model.parameters()] == storage
    assert "torch runs what would be C" not in caplog.text


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_are_rows_in_programs_and_scripts(program: str) -> None:
    definition, loss, step, values, gradient = PROGRAMS[program]
    model = relay.create_model(definition, seed=0)
    step(model, OPTIMIZERS["adam"](), values)
    lines = (line.split() for line in step.explain().splitlines())
    assert [words[-1] for words in lines if words[:1] == ["model.0"]] == ["rows"]
    assert "rows of (5000, 8)" in repr(gradient(lambda v: relay.grad(model, loss, (v,)), values))
