"""Updates by scripts: all is checked before a parameter moves, and nothing of a step stays."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, RunError, Tensor, relay, relay_model

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
