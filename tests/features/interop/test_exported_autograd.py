"""Exported and loaded models in torch's autograd: nothing is silently detached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.tanh(relay.linear(x, out_features=2))


@pytest.fixture(params=["exported", "loaded"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """Return a model, and it as a callable of another kind."""
    model = relay.create_model(net, seed=0)
    exported = relay.export_model(model)
    if request.param == "exported":
        return model, exported
    exported.save(tmp_path / "net.safetensors")
    return model, relay.load_model(tmp_path / "net.safetensors")


def test_a_gradient_reaches_the_argument(pair: tuple[Any, Any]) -> None:
    model, plain = pair
    ours = torch.randn(4, 3, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    (plain(ours) ** 2).sum().backward()
    (model(theirs) ** 2).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_without_gradients_the_result_is_plain(pair: tuple[Any, Any]) -> None:
    assert not pair[1](torch.randn(4, 3)).requires_grad
