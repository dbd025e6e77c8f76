"""However a model reads rows of a table, the gradient of the table is these rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Tensor, options, relay, relay_model
from pyrelay.runtime.models.records import are_rows
from tests.features.gradients.training import descended_by, trained_by

K, N = Dim("K"), Dim("N")
LOWERINGS = ["c", "torch", "torch-regions", "evaluator"]


@relay_model
def elements(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500,))
    return relay.tanh(table[ids] + relay.take(table, ids)).sum()


@relay_model
def blocks(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 2, 3))
    return relay.tanh(table[ids]).sum() + relay.index_select(table, 0, ids)[0].sum()


@relay_model
def single(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return relay.tanh(table[ids[0]] * table[-1]).sum()


@relay_model
def loop(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    h = relay.zeros((3,))
    for i in ids:
        h = relay.tanh(h + table[i])
    return h.sum()


@relay_model
def cells(ids: Tensor[Int, (N,)]) -> Float:
    h = relay.zeros((3,))
    for i in ids:
        found = relay.embedding(i, num_embeddings=500, embedding_dim=3)
        h = relay.tanh(relay.linear(h, out_features=3, name="cell") + found)
    return h.sum()


@relay_model
def gathered(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    places = ids.unsqueeze(1).expand(ids.size(0), 3)
    return relay.tanh(relay.gather(table, 0, places)).sum()


@relay_model
def by_column(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 2, 3))
    places = (ids.reshape(-1, 1, 1) + relay.arange(6).reshape(1, 2, 3)) % 500
    return relay.tanh(relay.gather(table, 0, places)).sum()


@relay_model
def within(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 4, 3))
    return relay.tanh(table[ids, 1:3, -1] * table[ids - 3, :2][:, :, 0]).sum()


@relay_model
def taken(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return relay.tanh(relay.take(table, ids - 2) * relay.take(table, ids)).sum()


@relay
def looked_up(table: Tensor[Float, (K, 3)], ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 3)]:
    return relay.tanh(relay.embedding(ids, weight=table))


@relay_model
def helped(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return looked_up(table, ids).sum() + looked_up(table, ids // 2).sum()


@relay_model
def places(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    near = table[ids] * table[ids - 1] + relay.embedding(ids, weight=table)
    return relay.tanh(near * table[2]).sum()


@relay_model
def tied(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return relay.tanh(table[ids] @ table.T).sum()


def _looped(t: torch.Tensor, ids: torch.Tensor, w: Any = None, b: Any = 0.0) -> torch.Tensor:
    h = torch.zeros(3)
    for i in ids:
        h = torch.tanh((h if w is None else w @ h + b) + t[i])
    return h.sum()


def _columns(ids: torch.Tensor) -> torch.Tensor:
    return (ids.reshape(-1, 1, 1) + torch.arange(6).reshape(1, 2, 3)) % 500


@dataclass(frozen=True)
class Case:
    """A model, and its value in torch by its parameters and the numbers of rows."""

    model: Any
    reference: Callable[..., torch.Tensor]


CASES = {
    "elements": Case(elements, lambda ids, t: torch.tanh(2 * t[ids]).sum()),
    "blocks": Case(blocks, lambda ids, t: torch.tanh(t[ids]).sum() + t[ids[0]].sum()),
    "single": Case(single, lambda ids, t: torch.tanh(t[ids[0]] * t[-1]).sum()),
    "loop": Case(loop, lambda ids, t: _looped(t, ids)),
    "cells": Case(cells, lambda ids, t, w, b: _looped(t, ids, w, b)),
    "gathered": Case(gathered, lambda ids, t: torch.tanh(t[ids]).sum()),
    "by column": Case(by_column, lambda ids, t: torch.tanh(t.gather(0, _columns(ids))).sum()),
    "within": Case(
        within, lambda ids, t: torch.tanh(t[ids, 1:3, -1] * t[ids - 3, :2][:, :, 0]).sum()
    ),
    "taken": Case(taken, lambda ids, t: torch.tanh(t.take(ids - 2) * t.take(ids)).sum()),
    "helped": Case(helped, lambda ids, t: torch.tanh(t[ids]).sum() + torch.tanh(t[ids // 2]).sum()),
    "places": Case(places, lambda ids, t: torch.tanh((t[ids] * t[ids - 1] + t[ids]) * t[2]).sum()),
}
BATCHES = torch.tensor([[3, 7, 3, 499], [0, 7, 1, 2], [499, 499, 8, 0]])
OPTIMIZERS = {
    "adam": lambda: relay.optim.adam(lr=0.1, weight_decay=0.1),
    "momentum": lambda: relay.optim.sgd(0.1, 0.9, 0.1, nesterov=True),
}


def loss_of(model: Any) -> Any:
    @relay
    def loss(ids: Tensor[Int, (N,)]) -> Float:
        return model(ids)

    return loss


def tables(gradient: Any, model: Any) -> list[bool]:
    """Return which of the gradients of large parameters are rows."""
    pairs = zip(gradient.parts, model.parameters(), strict=True)
    return [are_rows(part) for part, param in pairs if len(param) == 500]


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_gradient_of_a_table_is_rows(case: Case, lowering: str) -> None:
    model, loss = relay.create_model(case.model, seed=0), loss_of(case.model)
    params = [p.detach().clone() for p in model.parameters()]
    ids = BATCHES[0]
    expected = torch.func.grad(lambda ps: case.reference(ids, *ps))(params)
    with options(lowering=lowering):
        for _ in range(2):  # a backend may leave first calls to torch
            relay.grad(model, loss, (ids,))
        gradient = relay.grad(model, loss, (ids,))
        if lowering != "evaluator":  # it changes nothing
            assert tables(gradient, model) == [True]
        relay.update_model_params(model, gradient, lr=0.1)
        torch.testing.assert_close([*gradient.values()], expected)
    moved = [p - 0.1 * g for p, g in zip(params, expected, strict=True)]
    torch.testing.assert_close([p.detach() for p in model.parameters()], moved)


def test_the_gradient_of_tied_weights_is_dense() -> None:
    model, loss, ids = relay.create_model(tied, seed=0), loss_of(tied), BATCHES[0]
    (table,) = (p.detach().clone() for p in model.parameters())
    gradient = relay.grad(model, loss, (ids,))
    assert tables(gradient, model) == [False]
    expected = torch.func.grad(lambda t: torch.tanh(t[ids] @ t.T).sum())(table)
    torch.testing.assert_close([*gradient.values()], [expected])


@pytest.mark.parametrize("lowering", ["c", "torch", "torch-regions"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_descent_in_programs_is_that_of_torch(case: Case, lowering: str) -> None:
    model = relay.create_model(case.model, seed=0)
    params = [p.detach().clone() for p in model.parameters()]
    with options(lowering=lowering):
        descended_by(case.model, loss_of(case.model))(model, BATCHES)
    for ids in BATCHES:
        grads = torch.func.grad(lambda ps, ids=ids: case.reference(ids, *ps))(params)
        params = [p - 0.1 * g for p, g in zip(params, grads, strict=True)]
    torch.testing.assert_close([p.detach() for p in model.parameters()], params)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_optimisers_in_programs_step_as_in_scripts(case: Case, name: str) -> None:
    own, theirs = OPTIMIZERS[name](), OPTIMIZERS[name]()
    model, other = (relay.create_model(case.model, seed=0) for _ in range(2))
    loss = loss_of(case.model)
    trained_by(case.model, loss)(model, own, BATCHES)
    for ids in BATCHES:
        relay.update_model_params(other, relay.grad(other, loss, (ids,)), optimizer=theirs)
    torch.testing.assert_close([*model.parameters()], [*other.parameters()])
    torch.testing.assert_close(own.state_dict(model), theirs.state_dict(other))


@relay
def cells_loss(ids: Tensor[Int, (N,)]) -> Float:
    return cells(ids)


@relay
def slowed(model: Model[cells], batches: Tensor[Int, (K, N)], lr: Float) -> Float:
    total = 0.0
    for ids in batches:
        value, grads = relay.value_and_grad(model, cells_loss, (ids,))
        relay.update_model_params(model, grads, lr=lr)
        lr = lr * 0.5
        total += value
    return total


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_plain_descent_at_a_rate_that_changes_moves_rows(lowering: str) -> None:
    model = relay.create_model(cells, seed=0)
    params = [p.detach().clone() for p in model.parameters()]
    before, storage = params[:], [p.data_ptr() for p in model.parameters()]
    for place, ids in enumerate(BATCHES):
        grads = torch.func.grad(lambda ps, ids=ids: _looped(ps[0], ids, *ps[1:]))(params)
        params = [p - 0.1 * 0.5**place * g for p, g in zip(params, grads, strict=True)]
    with options(lowering=lowering):
        slowed(model, BATCHES, 0.1)
        torch.testing.assert_close([*model.parameters()], params, check_stride=False)
        assert not torch.equal(params[0], before[0])
        if lowering != "evaluator":  # it changes nothing in place
            assert [p.data_ptr() for p in model.parameters()] == storage
            assert "rows" in slowed.explain().partition("updates take gradients as")[2]
