"""Models of trees with words at their leaves: a step moves the rows of the words alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Float, Model, Optimizer, options, relay
from tests.features.gradients.tree_programs import (
    OPTIMIZERS,
    Pair,
    Tree,
    Word,
    helped,
    helped_loss,
    recursive,
    recursive_loss,
)


@relay
def recursive_step(model: Model[recursive], optimizer: Optimizer, tree: Tree) -> Float:
    value, grads = relay.value_and_grad(model, recursive_loss, (tree,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def helped_step(model: Model[helped], optimizer: Optimizer, tree: Tree) -> Float:
    value, grads = relay.value_and_grad(model, helped_loss, (tree,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


PROGRAMS = {
    "a recursive model": (recursive, recursive_loss, recursive_step),
    "a recursive function": (helped, helped_loss, helped_step),
}
TREES = (
    Pair(Pair(Word(3), Word(4_999)), Pair(Word(3), Word(0))),
    Word(7),
    Pair(Word(7), Pair(Word(2), Word(7))),
)


@pytest.mark.parametrize("lowering", ["c", "torch", "torch-regions"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_step_on_a_tree_moves_the_rows_of_its_words(
    program: str, name: str, lowering: str
) -> None:
    definition, loss, step = PROGRAMS[program]
    own, theirs = OPTIMIZERS[name](), OPTIMIZERS[name]()
    model, other = (relay.create_model(definition, seed=0) for _ in range(2))
    storage = [p.data_ptr() for p in model.parameters()]
    table: Any = next(p for p in model.parameters() if len(p) == 5_000)
    before = table.detach().clone()
    for tree in TREES:
        with options(lowering=lowering):
            step(model, own, tree)
        relay.update_model_params(other, relay.grad(other, loss, (tree,)), optimizer=theirs)
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    torch.testing.assert_close(own.state_dict(model), theirs.state_dict(other))
    moved = (table != before).any(dim=1).nonzero().squeeze(1)
    assert moved.tolist() == [0, 2, 3, 7, 4_999]
    assert [p.data_ptr() for p in model.parameters()] == storage


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_of_the_words_of_a_tree_is_rows(program: str) -> None:
    definition, _, step = PROGRAMS[program]
    model, adam = relay.create_model(definition, seed=0), relay.optim.adam(lr=0.1)
    step(model, adam, TREES[0])
    lines = (line.split() for line in step.explain().splitlines())
    assert [words[-1] for words in lines if words[:1] == ["model.0"]] == ["rows"]
