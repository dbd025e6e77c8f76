"""A Kalman filter: a state of mean and covariance, and the likelihood's gradient by the noises."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from pyrelay import Dim, Float, Tensor, relay

T = Dim("T")


@dataclass(frozen=True)
class Belief:
    mean: Tensor[Float, (2,)]
    covariance: Tensor[Float, (2, 2)]

    @property
    def position(self) -> Float:
        return self.mean[0]

    def predicted(self, dt: float, process: Float) -> Belief:
        motion = relay.tensor([[1.0, dt], [0.0, 1.0]])
        noise = process * relay.tensor([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
        return Belief(motion @ self.mean, motion @ self.covariance @ motion.T + noise)

    def residual(self, measured: Float, noise: Float) -> tuple[Float, Float]:
        return measured - self.position, self.covariance[0, 0] + noise

    def updated(self, residual: Float, variance: Float) -> Belief:
        gain = self.covariance[:, 0] / variance
        mean = self.mean + gain * residual
        return Belief(mean, self.covariance - relay.outer(gain, self.covariance[0]))


@relay
def filtered(
    measured: Tensor[Float, (T,)], process: Float, noise: Float, dt: float = 0.1
) -> tuple[list[Float], Float]:
    belief = Belief(relay.zeros(2), relay.eye(2))
    log_likelihood = 0
    positions = []
    for z in measured:
        belief = belief.predicted(dt, process)
        residual, variance = belief.residual(z, noise)
        log_likelihood -= 0.5 * (
            residual**2 / variance + relay.log(variance) + math.log(2 * math.pi)
        )
        belief = belief.updated(residual, variance)
        positions.append(belief.position)
    return positions, log_likelihood


@relay
def negative_log_likelihood(measured: Tensor[Float, (T,)], process: Float, noise: Float) -> Float:
    _, value = filtered(measured, process, noise)
    return -value


def measurements() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    times = torch.arange(40) * 0.1
    return times.sin() + 0.2 * torch.randn(40, generator=generator)


def reference(
    measured: torch.Tensor, process: torch.Tensor, noise: torch.Tensor, dt: float = 0.1
) -> tuple[torch.Tensor, torch.Tensor]:
    motion = torch.tensor([[1.0, dt], [0.0, 1.0]])
    shape = torch.tensor([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    mean, covariance, value = torch.zeros(2), torch.eye(2), torch.zeros(())
    positions: list[torch.Tensor] = []
    for z in measured:
        mean, covariance = motion @ mean, motion @ covariance @ motion.T + process * shape
        variance, residual = covariance[0, 0] + noise, z - mean[0]
        value = value - 0.5 * (residual**2 / variance + variance.log() + math.log(2 * math.pi))
        gain = covariance[:, 0] / variance
        mean, covariance = mean + gain * residual, covariance - torch.outer(gain, covariance[0])
        positions.append(mean[0])
    return torch.stack(positions), value


def test_positions_and_likelihood_equal_those_of_torch() -> None:
    positions, value = filtered(measurements(), 0.5, 0.04)
    expected, expected_value = reference(measurements(), torch.tensor(0.5), torch.tensor(0.04))
    torch.testing.assert_close(torch.stack(list(positions)), expected)
    torch.testing.assert_close(value, expected_value)


def test_the_gradient_by_the_noises_is_that_of_torch() -> None:
    noises = [torch.tensor(v, requires_grad=True) for v in (0.5, 0.04)]
    (-reference(measurements(), *noises)[1]).backward()
    ours = relay.grad(negative_log_likelihood, wrt=("process", "noise"))(measurements(), 0.5, 0.04)
    for gradient, noise in zip(ours, noises, strict=True):
        torch.testing.assert_close(gradient, noise.grad, rtol=1e-4, atol=1e-4)


def test_descent_on_the_likelihood_finds_better_noises() -> None:
    process, noise = 0.5, 0.5
    first = negative_log_likelihood(measurements(), process, noise)
    for _ in range(20):
        by_process, by_noise = relay.grad(negative_log_likelihood, wrt=("process", "noise"))(
            measurements(), process, noise
        )
        process -= 0.0001 * float(by_process)
        noise -= 0.0001 * float(by_noise)
    assert negative_log_likelihood(measurements(), process, noise) < first
