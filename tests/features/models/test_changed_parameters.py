"""What a script does to the tensors of a model between two calls never reaches compiled code, which
reads their memory by the shapes and dtypes of the definition."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, RunError, Tensor, relay, relay_model

N = Dim("N")
X = torch.ones(2, 3)


@relay_model
def encoder(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 4)]:
    return relay.linear(relay.batch_norm(x), out_features=4)


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(encoder(x), out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return net(x).sum()


def made() -> Any:
    """Return a model that has been called often enough for calls to be direct."""
    model = relay.create_model(net).eval()
    for _ in range(3):
        called(model)
    return model


def called(model: Any) -> Any:
    model(X)
    model.encoder(X)
    with torch.no_grad():
        model(X)
    return relay.grad(model, loss, (X,))


def narrow(model: Any) -> None:
    model.linear_1.weight.data = torch.ones(1)


def replaced(model: Any) -> None:
    model.encoder.linear_1.weight = torch.nn.Parameter(torch.ones(5, 5))


def widened(model: Any) -> None:
    model.encoder.linear_1.weight.data = torch.ones(4, 3, dtype=torch.float64)


def moved(model: Any) -> None:
    model.encoder.linear_1.to("meta")


def statistics(model: Any) -> None:
    model.encoder.batch_norm_1.running_mean = torch.zeros(1)


@pytest.mark.parametrize("change", [narrow, replaced, widened, moved, statistics])
def test_a_tensor_that_does_not_fit_any_more_is_refused(change: Callable[[Any], None]) -> None:
    model = made()
    change(model)
    for call in (
        lambda: model(X),
        lambda: torch.no_grad()(model)(X),
        lambda: relay.grad(model, loss, (X,)),
        lambda: relay.with_params(loss)(model.params, X),
        lambda: relay.export_model(model),
    ):
        with pytest.raises(RunError, match="RL421"):
            call()
    if change is not narrow:
        with pytest.raises(RunError, match="RL421"):
            model.encoder(X)


def test_what_fits_is_read_anew() -> None:
    model = made()
    other = relay.create_model(net, seed=1).eval()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        ours.data = theirs.detach().clone()
    torch.testing.assert_close(model(X), other(X))
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.to("cpu")):
        torch.testing.assert_close(again(X), other(X))
        again.linear_1.weight.data = torch.ones(1)
        with pytest.raises(RunError, match="RL421"):
            again(X)
