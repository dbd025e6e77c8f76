"""What `explain` says of the gradients that updates take."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, Tensor, options, relay, relay_model

M, N = Dim("M"), Dim("N")


@relay_model
def net(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 500)]:
    found = relay.embedding(ids, num_embeddings=500, embedding_dim=4)
    tied = relay.param((500, 4))
    h = relay.tanh(relay.linear(found, out_features=4) + tied[ids])
    return h @ tied.T


@relay
def loss(ids: Tensor[Int, (N,)]) -> Float:
    return (net(ids) ** 2).sum()


@relay
def descended(model: Model[net], ids: Tensor[Int, (N,)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (ids,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@relay
def stepped(model: Model[net], optimizer: Optimizer, ids: Tensor[Int, (N,)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (ids,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


MODEL = relay.create_model(net, seed=0)


@pytest.mark.parametrize("lowering", ["c", "torch"])
@pytest.mark.parametrize("function", [descended, stepped], ids=["descent", "optimiser"])
def test_each_gradient_is_rows_or_dense_for_a_reason(function: Any, lowering: str) -> None:
    ids = torch.tensor([1, 2, 1])
    with options(lowering=lowering):
        if function is stepped:
            stepped(MODEL, relay.optim.adam(lr=0.1), ids)
        text = function.explain().partition("updates take gradients as\n")[2]
    found, tied, weight, bias = text.splitlines()[:4]
    assert found.split() == ["model.0", "Tensor[Float,", "(500,", "4)]", "N", "rows"]
    assert tied.endswith("dense: the whole table is read at line 20")
    assert weight.endswith(("dense", "dense, as two factors"))
    assert bias.endswith("dense")


@relay_model
def looked_up(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 4)]:
    return relay.tanh(relay.embedding(ids, num_embeddings=500, embedding_dim=4))


@relay
def looked_up_loss(ids: Tensor[Int, (N,)]) -> Float:
    return (looked_up(ids) ** 2).sum()


@relay
def accumulated(
    model: Model[looked_up], optimizer: Optimizer, batches: Tensor[Int, (M, N)]
) -> Float:
    total = relay.grad(model, looked_up_loss, (batches[0],))
    for ids in batches[1:]:
        total = total + relay.grad(model, looked_up_loss, (ids,))
    relay.update_model_params(model, total, optimizer=optimizer)
    return total.norm()


@relay
def accumulated_lists(
    model: Model[looked_up], optimizer: Optimizer, batches: list[Tensor[Int, (Any,)]]
) -> Float:
    total = relay.grad(model, looked_up_loss, (batches[0],))
    for ids in batches[1:]:
        total = total + relay.grad(model, looked_up_loss, (ids,))
    relay.update_model_params(model, total, optimizer=optimizer)
    return total.norm()


BATCHES = torch.tensor([[1, 2], [2, 3], [4, 5]])
SUMS: dict[str, tuple[Any, Any]] = {
    "of as many rows each": (accumulated, BATCHES),
    "of any number of rows": (accumulated_lists, [*BATCHES]),
}


@pytest.mark.parametrize("case", SUMS)
@pytest.mark.parametrize("lowering", ["c", "torch"])
def test_a_table_whose_rows_a_loop_adds_up(case: str, lowering: str) -> None:
    function, batches = SUMS[case]
    model = relay.create_model(looked_up, seed=0)
    with options(lowering=lowering):
        function(model, relay.optim.adam(lr=0.1), batches)
        text = function.explain().partition("updates take gradients as\n")[2]
    assert text.splitlines()[0].endswith("any number of rows")


def test_nothing_is_said_where_no_gradient_is_rows() -> None:
    @relay
    def square(x: Tensor[Float, (N,)]) -> Float:
        return (x * x).sum()

    assert "updates take" not in relay.grad(square).explain()


def test_a_gradient_prints_its_rows() -> None:
    gradient = relay.grad(MODEL, loss, (torch.tensor([1, 2, 1]),))
    text = repr(gradient)
    assert text.startswith("Grads(found.weight: 3 rows of (500, 4), tied: (500, 4), ")
