"""Counts of integers: the derivative by their weights, and a negative integer."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay

N = Dim("N")


@relay
def spread(x: Tensor[Int, (N,)], weights: Tensor[Float, (N,)]) -> Float:
    sums = relay.bincount(x, weights, minlength=4)
    return (sums * sums).sum()


def test_the_derivative_by_the_weights_comes_from_their_bins() -> None:
    x, weights = torch.tensor([0, 2, 2, 5]), torch.tensor([1.0, 2.0, 3.0, 0.5])
    assert spread(x, weights).item() == 1.0 + 25.0 + 0.25
    by_weights = relay.grad(spread, wrt="weights")(x, weights)
    assert by_weights.tolist() == [2.0, 10.0, 10.0, 1.0]


def test_a_negative_integer_stops_the_program_at_the_line_of_the_user() -> None:
    with pytest.raises(RunError) as caught:
        spread(torch.tensor([0, -1]), torch.ones(2))
    assert "relay.bincount(x, weights, minlength=4)" in str(caught.value)
