"""An adaptive solver of differential equations: steps that the error chooses, and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from pyrelay import Float, RunError, Tensor, relay

State = Tensor[Float, (2,)]


@dataclass(frozen=True)
class Solution:
    y: State
    accepted: int
    rejected: int


@relay
def heun_euler(
    f: Callable[[Float, State], State], t: Float, y: State, h: Float
) -> tuple[State, Float]:
    k1 = f(t, y)
    k2 = f(t + h, y + h * k1)
    return y + 0.5 * h * (k1 + k2), (0.5 * h * (k2 - k1)).abs().max()


@relay
def solve(
    f: Callable[[Float, State], State], y: State, end: Float, tolerance: float = 1e-4
) -> Solution:
    t, h = 0.0, 0.1
    accepted = rejected = 0
    while t < end:
        h = min(h, end - t)
        proposal, error = heun_euler(f, t, y, h)
        if error <= tolerance:
            t += h
            y = proposal
            accepted += 1
        else:
            rejected += 1
        factor = 0.9 * (tolerance / max(error, 1e-10)) ** 0.5
        h *= min(2.0, max(0.2, relay.stop_gradient(factor)))
        assert accepted + rejected < 10_000, "the step became too small"
    return Solution(y, accepted, rejected)


@relay
def oscillator(omega: Float, y: State, end: Float) -> State:
    def f(t: Float, y: State) -> State:
        return relay.stack((y[1], -(omega**2) * y[0]))

    return solve(f, y, end).y


@relay
def position(omega: Float) -> Float:
    return oscillator(omega, relay.tensor([1.0, 0.0]), 2.0)[0]


def reference(omega: torch.Tensor, end: float, tolerance: float = 1e-4) -> torch.Tensor:
    def f(y: torch.Tensor) -> torch.Tensor:
        return torch.stack((y[1], -(omega**2) * y[0]))

    y, t, h = torch.tensor([1.0, 0.0]), torch.tensor(0.0), torch.tensor(0.1)
    while t < end:
        h = torch.minimum(h, end - t).detach()
        k1 = f(y)
        k2 = f(y + h * k1)
        error = (0.5 * h * (k2 - k1)).abs().max().detach()
        if error <= tolerance:
            t, y = t + h, y + 0.5 * h * (k1 + k2)
        factor = 0.9 * (tolerance / error.clamp(min=1e-10)) ** 0.5
        h = h * factor.clamp(0.2, 2.0)
    return y


def test_the_solution_is_close_to_the_cosine() -> None:
    assert float(position(1.5)) == pytest.approx(math.cos(3.0), abs=2e-2)


def test_value_and_gradient_equal_those_of_torch() -> None:
    omega = torch.tensor(1.5, requires_grad=True)
    expected = reference(omega, 2.0)[0]
    expected.backward()
    value, gradient = relay.value_and_grad(position)(1.5)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(gradient, omega.grad, rtol=2e-2, atol=1e-2)


def test_a_smaller_tolerance_takes_more_steps() -> None:
    @relay
    def steps(tolerance: float) -> int:
        return solve(lambda t, y: -y, relay.tensor([1.0, 2.0]), 3.0, tolerance).accepted

    assert steps(1e-6) > steps(1e-3) > 3


def test_an_equation_that_explodes_ends_in_the_assertion() -> None:
    @relay
    def explode() -> State:
        return solve(lambda t, y: y * y, relay.tensor([1.0, 1.0]), 1.5).y

    with pytest.raises(RunError, match="the step became too small"):
        explode()
