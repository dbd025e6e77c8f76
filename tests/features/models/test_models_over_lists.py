"""Models called on each element of a list, whose sizes only the elements show."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.prelude import List

N, M = Dim("N"), Dim("M")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def norms(xs: List[Tensor[Float, (N, 3)]], ys: List[Tensor[Float, (M, 3)]]) -> Float:
    of_xs = sum([relay.mean(net(x) ** 2) for x in xs])
    return of_xs + sum([relay.mean(net(y) ** 2) for y in ys])


def by_hand(model: Any, *lists: list[torch.Tensor]) -> torch.Tensor:
    """Return what the program computes, written with torch."""
    weights = dict(model.named_parameters())
    results = [
        (
            torch.nn.functional.linear(x, weights["linear_1.weight"], weights["linear_1.bias"]) ** 2
        ).mean()
        for xs in lists
        for x in xs
    ]
    return sum(results, torch.zeros(()))


@pytest.mark.parametrize(("first", "second"), [(3, 2), (1, 0), (0, 4), (0, 0)])
def test_gradients_are_torchs_where_lists_may_be_empty(first: int, second: int) -> None:
    model = relay.create_model(net, seed=0)
    xs = [torch.randn(4, 3) for _ in range(first)]
    ys = [torch.randn(5, 3) for _ in range(second)]
    value, grads = relay.value_and_grad(model, norms, (xs, ys))
    expected = by_hand(model, xs, ys)
    torch.testing.assert_close(value, expected.detach())
    if expected.requires_grad:
        expected.backward()
    for name, parameter in model.named_parameters():
        wanted = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(grads[name], wanted)
