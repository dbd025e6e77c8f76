"""A gradient fails where a row of a table does not exist, as the function does: also where nothing
else needs the values of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, options, relay, relay_model

N = Dim("N")
Table = Tensor[Float, (4, 3)]
Picks = Tensor[Int, (N,)]


@relay
def embedded(table: Table, ids: Picks) -> Float:
    return relay.embedding(ids, table).sum()


@relay
def indexed(table: Table, ids: Picks) -> Float:
    return table[ids].sum()


@relay
def selected(table: Table, ids: Picks) -> Float:
    return relay.index_select(table, 0, ids).sum()


@relay_model
def net(ids: Picks) -> Float:
    return relay.embedding(ids, num_embeddings=2_000, embedding_dim=8).sum()


@relay
def loss(ids: Picks) -> Float:
    return net(ids)


TABLE, MODEL = torch.ones(4, 3), relay.create_model(net, seed=0)
GRADIENTS: Final[dict[str, Callable[[torch.Tensor], Any]]] = {
    "embedding": lambda ids: relay.grad(embedded, wrt="table")(TABLE, ids),
    "index": lambda ids: relay.grad(indexed, wrt="table")(TABLE, ids),
    "index_select": lambda ids: relay.grad(selected, wrt="table")(TABLE, ids),
    "rows for a script": lambda ids: relay.grad(MODEL, loss, (ids,)),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("lowering", ["evaluator", "torch", "torch-regions", "c"])
def test_a_gradient_of_a_row_that_does_not_exist_fails(name: str, lowering: Any) -> None:
    gradient = GRADIENTS[name]
    with options(lowering=lowering):
        gradient(torch.tensor([3, 0, 3]))
        with pytest.raises(RunError, match="index out of range") as caught:
            gradient(torch.tensor([1, 9_000, 0]))
        assert caught.value.codes == ("RL502",)
