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


@relay_model
def weighted(ids: Tensor[Int, (5,)], factors: Tensor[Float, (6,)]) -> Float:
    first = relay.param((3,))
    weight = relay.param((5,))
    last = relay.param((4,))
    return (first**2).sum() + (weight * factors[ids]).sum() + (last**2).sum()


@relay
def weighted_loss(ids: Tensor[Int, (5,)], factors: Tensor[Float, (6,)]) -> Float:
    return weighted(ids, factors)


@relay
def descend_by_factors(
    model: Model[weighted], ids: Tensor[Int, (5,)], factors: Tensor[Float, (6,)]
) -> Float:
    relay.update_model_params(model, relay.grad(model, weighted_loss, (ids, factors)), lr=0.1)
    return 0.0


@relay
def optimise_by_factors(
    model: Model[weighted],
    opt: Optimizer,
    ids: Tensor[Int, (5,)],
    factors: Tensor[Float, (6,)],
) -> Float:
    grads = relay.grad(model, weighted_loss, (ids, factors))
    relay.update_model_params(model, grads, optimizer=opt)
    return 0.0


FACTORS: Final = torch.arange(6.0)
EXISTING, MISSING = torch.arange(5), torch.tensor([0, 1, 2, 3, 9])
each_lowering = pytest.mark.parametrize("lowering", ["torch", "torch-regions", "c", "auto"])


@pytest.mark.parametrize("make", [None, adam], ids=["descent", "adam"])
@each_lowering
def test_an_update_that_reads_where_nothing_is_moves_nothing(lowering: Any, make: Any) -> None:
    model = relay.create_model(weighted, seed=0)
    opt = None if make is None else make()

    def step(ids: torch.Tensor) -> None:
        if opt is None:
            descend_by_factors(model, ids, FACTORS)
        else:
            optimise_by_factors(model, opt, ids, FACTORS)

    def state() -> list[torch.Tensor]:
        moments = [] if opt is None else opt.state_dict(model)["moments"]
        kept = [*model.parameters(), *(t for tree in moments for t in tree.values())]
        return [t.detach().clone() for t in kept]

    with options(lowering=lowering):
        step(EXISTING)
        before = state()
        with pytest.raises(RunError, match="out of range"):
            step(MISSING)
        assert all(map(torch.equal, before, state()))


@relay
def descend_then_read(
    model: Model[weighted],
    ids: Tensor[Int, (5,)],
    others: Tensor[Int, (5,)],
    factors: Tensor[Float, (6,)],
) -> Float:
    relay.update_model_params(model, relay.grad(model, weighted_loss, (ids, factors)), lr=0.1)
    return model(others, factors)


@each_lowering
def test_an_update_before_an_error_is_made_once(lowering: Any) -> None:
    one, two = (relay.create_model(weighted, seed=0) for _ in range(2))
    with options(lowering=lowering):
        descend_then_read(one, EXISTING, EXISTING, FACTORS)
        with pytest.raises(RunError, match="out of range"):
            descend_then_read(one, EXISTING, MISSING, FACTORS)
        for _ in range(2):
            descend_by_factors(two, EXISTING, FACTORS)
    torch.testing.assert_close([*one.parameters()], [*two.parameters()])
