"""An update that fails has moved nothing: the rows of all tables are looked for before the first
parameter changes, also where the values of the forward pass are not needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Optimizer, RunError, Tensor, options, relay, relay_model

N = Dim("N")
Picks = Tensor[Int, (N,)]


@relay_model
def net(ids: Picks, others: Picks) -> Float:
    first = relay.param((3,))
    h = relay.embedding(ids, num_embeddings=2_000, embedding_dim=8)
    last = relay.param((4,))
    g = relay.embedding(others, num_embeddings=1_000, embedding_dim=8)
    return h.sum() + (first**2).sum() + (last**2).sum() + 2.0 * g.sum()


@relay
def loss(ids: Picks, others: Picks) -> Float:
    return net(ids, others)


@relay
def descend(model: Model[net], ids: Picks, others: Picks) -> Float:
    relay.update_model_params(model, relay.grad(model, loss, (ids, others)), lr=0.1)
    return 0.0


@relay
def descend_and_read(model: Model[net], ids: Picks, others: Picks) -> Float:
    relay.update_model_params(model, relay.grad(model, loss, (ids, others)), lr=0.1)
    return model(ids * 0, others * 0)


@relay
def optimise(model: Model[net], opt: Optimizer, ids: Picks, others: Picks) -> Float:
    relay.update_model_params(model, relay.grad(model, loss, (ids, others)), optimizer=opt)
    return 0.0


def descend_by_script(model: Any, ids: Any, others: Any) -> None:
    relay.update_model_params(model, relay.grad(model, loss, (ids, others)), lr=0.1)


def optimise_by_script(model: Any, opt: Any, ids: Any, others: Any) -> None:
    relay.update_model_params(model, relay.grad(model, loss, (ids, others)), optimizer=opt)


def momentum() -> Any:
    return relay.optim.sgd(lr=0.1, momentum=0.9)


def adam() -> Any:
    return relay.optim.adam(lr=0.1)


STEPS: Final[dict[str, tuple[Callable[..., Any], Callable[[], Any] | None]]] = {
    "descent": (descend, None),
    "descent, then a read": (descend_and_read, None),
    "momentum": (optimise, momentum),
    "adam": (optimise, adam),
    "descent by a script": (descend_by_script, None),
    "momentum by a script": (optimise_by_script, momentum),
    "adam by a script": (optimise_by_script, adam),
}
GOOD: Final = torch.tensor([7, 7, 8])
BAD: Final = [torch.tensor([7, 1_500, 8]), torch.tensor([7, 8, -1])]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("lowering", ["evaluator", "torch", "torch-regions", "c"])
def test_an_update_with_a_row_that_does_not_exist_moves_nothing(name: str, lowering: Any) -> None:
    step, make = STEPS[name]
    model = relay.create_model(net, seed=0)
    opt = None if make is None else make()
    given = (model,) if opt is None else (model, opt)

    def state() -> list[torch.Tensor]:
        moments = [] if opt is None else opt.state_dict(model)["moments"]
        kept = [*model.parameters(), *(t for tree in moments for t in tree.values())]
        return [t.detach().clone() for t in kept]

    with options(lowering=lowering):
        start = state()
        step(*given, GOOD, GOOD)
        before = state()
        assert not any(map(torch.equal, start, before[: len(start)]))
        for bad in BAD:
            with pytest.raises((RunError, IndexError), match="out of range"):
                step(*given, GOOD, bad)
            assert all(map(torch.equal, before, state()))
        step(*given, GOOD, GOOD)
        assert not any(map(torch.equal, before, state()))
