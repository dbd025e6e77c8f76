"""Updates by scripts: all is checked before a parameter moves, and nothing of a step stays."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, RunError, Tensor, relay, relay_model
from tests.interrupts import each_interrupt

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return net(x).sum()


def made() -> tuple[list[Any], list[Any]]:
    models = [relay.create_model(net, seed=seed) for seed in range(2)]
    return models, [relay.grad(m, loss, (torch.ones(1, 3),)) for m in models]


def weights(models: list[Model]) -> list[torch.Tensor]:
    return [m.linear_1.weight.detach().clone() for m in models]


@pytest.mark.parametrize(
    "second",
    [[], [{"linear_1.weight": torch.ones(7)}], [3]],
    ids=["none", "another shape", "no gradient"],
)
def test_no_model_of_a_list_moves_where_one_has_no_fitting_gradient(second: list[Any]) -> None:
    models, grads = made()
    before = weights(models)
    with pytest.raises(RunError):
        relay.update_model_params(models, [grads[0], *second], lr=0.1)
    assert all(map(torch.equal, weights(models), before))


def test_one_gradient_for_a_list_of_models_is_refused() -> None:
    models, grads = made()
    with pytest.raises(RunError, match="a gradient for each, not one for 2 models"):
        relay.update_model_params(models, grads[0], lr=0.1)


@pytest.mark.parametrize("optimizer", [None, relay.optim.adamw(lr=0.1, weight_decay=0.5)])
def test_a_gradient_of_another_dtype_is_refused_before_anything_decays(optimizer: Any) -> None:
    (model, _), _ = made()
    before = weights([model])
    wide = {name: p.detach().double() for name, p in model.named_parameters()}
    with pytest.raises(RunError, match=r"float64 on cpu for torch\.float32"):
        relay.update_model_params(model, wide, lr=0.1, optimizer=optimizer)
    assert torch.equal(weights([model])[0], before[0])


def test_an_optimiser_of_torch_that_several_models_share_counts_each_gradient_once() -> None:
    models, grads = made()
    optimizer = torch.optim.SGD([p for m in models for p in m.parameters()], lr=0.1)
    before = weights(models)
    relay.update_model_params(models[0], grads[0], optimizer=optimizer)
    relay.update_model_params(models[1], grads[1], optimizer=optimizer)
    for now, then in zip(weights(models), before, strict=True):
        torch.testing.assert_close(now, then - 0.1)
    relay.update_model_params(models, grads, optimizer=optimizer)
    for now, then in zip(weights(models), before, strict=True):
        torch.testing.assert_close(now, then - 0.2)
    assert all(p.grad is None for m in models for p in m.parameters())


def moments_of(optimizer: Any, models: list[Any]) -> list[torch.Tensor]:
    """Return what an optimiser of either kind remembers of models, as copies."""
    if isinstance(optimizer, torch.optim.Optimizer):
        states = [optimizer.state[p] for m in models for p in m.parameters()]
        return [t.clone() for s in states for t in (s["step"], s["exp_avg"], s["exp_avg_sq"])]
    found: list[torch.Tensor] = []
    if optimizer is None:
        return found
    for model in models:
        state = optimizer.state_dict(model)
        found += [torch.tensor(float(state["step"]))]
        found += [t.clone() for tree in state["moments"] for t in tree.values()]
    return found


OPTIMIZERS: dict[str, Any] = {
    "descent": lambda _: None,
    "adam": lambda _: relay.optim.adam(lr=0.1),
    "torch": lambda models: torch.optim.Adam([p for m in models for p in m.parameters()], lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_interrupted_update_of_a_list_of_models_moves_all_or_none(name: str) -> None:
    def begun() -> Any:
        models, grads = made()
        optimizer = OPTIMIZERS[name](models)
        update((models, grads, optimizer))  # the moments are there from the first step on
        return models, grads, optimizer

    def update(given: Any) -> None:
        models, grads, optimizer = given
        rate = 0.1 if optimizer is None else None
        relay.update_model_params(models, grads, lr=rate, optimizer=optimizer)

    def state(given: Any) -> list[torch.Tensor]:
        models, _, optimizer = given
        return [*weights(models), *moments_of(optimizer, models)]

    known = [state(begun()), state(after := begun())]
    update(after)
    known[1] = state(after)
    found: set[int] = set()
    for given in each_interrupt(begun, update, every=1 if name != "torch" else 7):
        now = state(given)
        found.add([all(map(torch.equal, now, whole)) for whole in known].index(True))
        assert all(p.grad is None for m in given[0] for p in m.parameters())
    assert found == {0, 1}


@relay_model
def lookup(ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 2)]:
    return relay.embedding(ids, num_embeddings=5, embedding_dim=2)


@relay
def looked_up(ids: Tensor[Int, (N,)]) -> Float:
    return lookup(ids).sum()


@pytest.mark.parametrize("optimizer", [None, relay.optim.adam(lr=0.1)])
def test_no_model_of_a_list_moves_where_a_row_of_another_does_not_exist(optimizer: Any) -> None:
    models = [relay.create_model(lookup, seed=seed) for seed in range(2)]
    ids = torch.tensor([0, 4])
    grads = [relay.grad(m, looked_up, (ids,)) for m in models]
    rows, _ = grads[1].parts[0]
    parts, like = [(rows, torch.tensor([0, 9]))], [models[1].embedding_1.weight]
    wrong = type(grads[1])(grads[1].home, grads[1].tree, parts, like)
    before = [m.embedding_1.weight.detach().clone() for m in models]
    rate = 0.1 if optimizer is None else None
    with pytest.raises(IndexError):
        relay.update_model_params(models, [grads[0], wrong], lr=rate, optimizer=optimizer)
    for model, then in zip(models, before, strict=True):
        assert torch.equal(model.embedding_1.weight, then)


def test_a_model_that_stands_twice_in_a_list_takes_two_steps() -> None:
    (one, _), (first, second) = made()
    (two, _), _ = made()
    opts = [relay.optim.adam(lr=0.1) for _ in range(2)]
    relay.update_model_params([one, one], [first, second * 3.0], optimizer=opts[0])
    relay.update_model_params(two, first, optimizer=opts[1])
    relay.update_model_params(two, second * 3.0, optimizer=opts[1])
    assert all(map(torch.equal, weights([one]), weights([two])))
    assert opts[0].state_dict(one)["step"] == 2
