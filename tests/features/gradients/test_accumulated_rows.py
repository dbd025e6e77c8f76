"""Gradients of several batches, added up in a program, stay rows of the table up to the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, options, relay, relay_model
from tests.features.gradients.tree_programs import OPTIMIZERS

E, K, N = Dim("E"), Dim("K"), Dim("N")
Batches = Tensor[Int, (K, N)]


@relay_model
def net(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 1)]:
    table = relay.param((5_000, 8))
    both = relay.embedding(ids, weight=table) * table[ids - 1]
    return relay.linear(relay.tanh(both), out_features=1)


@relay_model
def cells(ids: Tensor[Int, (N,)]) -> Tensor[Float, (1, 8)]:
    h = relay.zeros((1, 8))
    for i in ids:
        found = relay.embedding(i, num_embeddings=5_000, embedding_dim=8)
        h = relay.tanh(relay.linear(h, out_features=8, name="cell") + found)
    return relay.tanh(relay.linear(h, out_features=8))


@relay
def net_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (net(ids) ** 2).sum()


@relay
def cells_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (cells(ids) ** 2).sum()


@relay
def loop(model: Model[net], optimizer: Optimizer, batches: Batches) -> Float:
    grads = relay.grad(model, net_loss, (batches[0],))
    total = 0.0
    for i in range(1, len(batches)):
        value, more = relay.value_and_grad(model, net_loss, (batches[i],))
        grads = grads + more
        total += value
    relay.update_model_params(model, grads, optimizer=optimizer)
    return total


@relay
def scaled(model: Model[net], optimizer: Optimizer, batches: Batches) -> Float:
    grads = relay.grad(model, net_loss, (batches[0],)) * 0.25
    for ids in batches[1:]:
        grads = grads + relay.grad(model, net_loss, (ids,)) * 0.5 + grads * 0.0
    relay.update_model_params(model, grads * 2.0, optimizer=optimizer)
    return grads.norm()


@relay
def weighted(model: Model[net], optimizer: Optimizer, batches: Batches) -> Float:
    grads = relay.grad(model, net_loss, (batches[0],)) * 0.25
    for ids in batches[1:]:
        grads = grads + relay.grad(model, net_loss, (ids,)) * (1.0 / len(batches))
    relay.update_model_params(model, grads * 2.0, optimizer=optimizer)
    return grads.norm()


@relay
def nested(model: Model[net], optimizer: Optimizer, batches: Batches) -> Float:
    total = 0.0
    for ids in batches:
        grads = relay.grad(model, net_loss, (ids,))
        for other in batches:
            grads = grads + relay.grad(model, net_loss, (other,))
        relay.update_model_params(model, grads, optimizer=optimizer)
        total += grads.norm()
    return total


@relay
def recursion(model: Model[cells], optimizer: Optimizer, batches: Batches) -> Float:
    grads = relay.grad(model, cells_loss, (batches[0],))
    for ids in batches[1:]:
        grads = grads + relay.grad(model, cells_loss, (ids,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return 0.0


@relay
def twice(model: Model[cells], optimizer: Optimizer, batches: Batches) -> Float:
    value, grads = relay.value_and_grad(model, cells_loss, (batches[0],))
    other, more = relay.value_and_grad(model, cells_loss, (batches[1],))
    relay.update_model_params(model, grads + more, optimizer=optimizer)
    return value + other


Grad = Callable[[torch.Tensor], Any]


def _weighted(grad: Grad, batches: torch.Tensor) -> Any:
    return sum((grad(b) * (1 / len(batches)) for b in batches[1:]), grad(batches[0]) * 0.25) * 2.0


def _halves(grad: Grad, batches: torch.Tensor) -> Any:
    return sum((grad(b) * 0.5 for b in batches[1:]), grad(batches[0]) * 0.25) * 2.0


PROGRAMS: dict[str, tuple[Any, Any, Any, Callable[..., Any]]] = {
    "a loop": (net, net_loss, loop, lambda grad, b: sum(map(grad, b[1:]), grad(b[0]))),
    "a mean": (net, net_loss, weighted, _weighted),
    "a sum that is read": (net, net_loss, scaled, _halves),
    "a recursion": (
        cells,
        cells_loss,
        recursion,
        lambda grad, b: sum(map(grad, b[1:]), grad(b[0])),
    ),
    "two calls": (cells, cells_loss, twice, lambda grad, b: grad(b[0]) + grad(b[1])),
}
SPARSE = ["a loop", "a mean", "two calls", "nested"]
BATCHES = torch.tensor([[3, 7, 3, 4_999], [1, 7, 1, 2], [4_999, 4_999, 8, 1]])


@pytest.mark.parametrize(
    ("name", "lowering"),
    [("adam", "c"), ("momentum", "torch"), ("descent", "c"), ("descent", "torch-regions")],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_sums_over_batches_step_as_in_a_script(program: str, name: str, lowering: str) -> None:
    definition, loss, step, added = PROGRAMS[program]
    own, theirs = OPTIMIZERS[name](), OPTIMIZERS[name]()
    model, other = (relay.create_model(definition, seed=0) for _ in range(2))
    for batches in (BATCHES, BATCHES.flip(0)[:2]):
        with options(lowering=lowering):
            step(model, own, batches)
        grads = added(lambda ids: relay.grad(other, loss, (ids,)), batches)
        relay.update_model_params(other, grads, optimizer=theirs)
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    torch.testing.assert_close(own.state_dict(model), theirs.state_dict(other))


def test_loops_in_a_loop_add_up_by_themselves() -> None:
    own, theirs = (OPTIMIZERS["adam"]() for _ in range(2))
    model, other = (relay.create_model(net, seed=0) for _ in range(2))
    nested(model, own, BATCHES)
    for ids in BATCHES:
        grads = sum(
            (relay.grad(other, net_loss, (b,)) for b in (ids, *BATCHES[1:])),
            start=relay.grad(other, net_loss, (BATCHES[0],)),
        )
        relay.update_model_params(other, grads, optimizer=theirs)
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])


@pytest.mark.parametrize("program", SPARSE)
def test_the_sum_over_batches_is_rows(program: str) -> None:
    definition, _, step, _ = PROGRAMS.get(program, (net, None, nested, None))
    step(relay.create_model(definition, seed=0), OPTIMIZERS["adam"](), BATCHES)
    lines = (line.split() for line in step.explain().splitlines())
    assert [words[-1] for words in lines if words[:1] == ["model.0"]] == ["rows"]
    text = step.show("simplified")
    assert "embedding_grad(" not in text
