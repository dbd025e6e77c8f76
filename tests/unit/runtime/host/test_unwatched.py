"""Programs that only compute run past autograd's bookkeeping, which cannot be observed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model
from pyrelay.runtime.host.compiled import CompiledProgram

pytestmark = pytest.mark.host("looks at what host code runs below")

N = Dim("N")

_torch: Any = torch
_excluded_keys = _torch._C._dispatch_tls_local_exclude_set


@relay_model
def layer(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    y = layer(x)
    return relay.sum(y * y)


@relay
def update(model: Model[layer], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return for each call of a compiled program whether autograd's layers were left out."""
    found: list[bool] = []
    call = CompiledProgram.__call__

    def noted(self: CompiledProgram, *args: object) -> object:
        run = self.function

        def watched(*given: object) -> object:
            found.append("AutogradOther" in str(_excluded_keys()))
            return run(*given)

        monkeypatch.setattr(self, "function", watched)
        try:
            return call(self, *args)
        finally:
            monkeypatch.setattr(self, "function", run)

    monkeypatch.setattr(CompiledProgram, "__call__", noted)
    return found


def test_what_only_computes_is_not_watched(guards: list[bool]) -> None:
    @relay
    def scaled(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return x * 2

    x = torch.ones(3)
    y = scaled(x)
    assert guards == [True]
    y.requires_grad_()
    (y * y).sum().backward()
    torch.testing.assert_close(y.grad, torch.full((3,), 4.0))
    assert not y.is_inference()
    assert x._version == 0


def test_updates_are_watched_so_stale_graphs_are_noticed(guards: list[bool]) -> None:
    model = relay.create_model(layer, seed=0)
    x = torch.randn(4, 3)
    weight = next(model.parameters())
    before = (weight * weight).sum()
    update(model, x)
    assert guards == [False]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.backward()


def test_views_of_arguments_are_still_copied(guards: list[bool]) -> None:
    @relay
    def part(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
        return x[:, 0]

    x = torch.zeros(2, 3)
    y = part(x)
    y += 1
    assert guards == [False]
    assert x.sum() == 0


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")
def test_forward_derivatives_of_torch_see_the_program(guards: list[bool]) -> None:
    @relay
    def square(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return x * x

    x = torch.tensor([2.0, 3.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(2))
        tangent = forward_ad.unpack_dual(square(dual)).tangent
    torch.testing.assert_close(tangent, 2 * x)
    assert guards == [False]
