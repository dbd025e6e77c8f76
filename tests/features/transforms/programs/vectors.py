"""Programs of a vector: elementwise functions, reductions, indexing, joining."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.nn import functional

from pyrelay import Tensor, float64, relay
from tests.features.transforms.programs.case import Case, in_torch

VECTOR = Tensor[float64, (3,)]


@relay
def sines(x: VECTOR) -> float64:
    return relay.sum(relay.sin(x) * x)


@relay
def cosines(x: VECTOR) -> float64:
    return relay.sum(relay.cos(x) / (1.0 + x * x))


@relay
def tangent_of_sum(x: VECTOR) -> float64:
    return relay.tan(relay.sum(x) * 0.1)


@relay
def exponentials(x: VECTOR) -> float64:
    return relay.sum(relay.exp(-x * x))


@relay
def logarithms(x: VECTOR) -> float64:
    return relay.sum(relay.log(1.0 + x * x))


@relay
def log1p_and_expm1(x: VECTOR) -> float64:
    return relay.sum(relay.log1p(x * x) * relay.expm1(x))


@relay
def hyperbolic(x: VECTOR) -> float64:
    return relay.sum(relay.tanh(x) * relay.cosh(x) - relay.sinh(x * 0.5))


@relay
def inverse_tangents(x: VECTOR) -> float64:
    return relay.sum(relay.atan(x) * x)


@relay
def roots(x: VECTOR) -> float64:
    return relay.sum(relay.sqrt(1.0 + x * x))


@relay
def reciprocal_roots(x: VECTOR) -> float64:
    return relay.sum(relay.rsqrt(2.0 + x * x))


@relay
def powers(x: VECTOR) -> float64:
    return relay.sum(x**3) * relay.sum(x**2)


@relay
def powers_of_tensors(x: VECTOR) -> float64:
    return relay.sum((1.0 + x * x) ** x)


@relay
def quotients(x: VECTOR) -> float64:
    return relay.sum(x) / relay.sum(1.0 + x * x)


@relay
def sigmoids(x: VECTOR) -> float64:
    return relay.sum(relay.sigmoid(x) * x)


@relay
def softplus(x: VECTOR) -> float64:
    return relay.sum(relay.softplus(x) ** 2)


@relay
def softmax(x: VECTOR) -> float64:
    return relay.sum(relay.softmax(x, dim=0) * x)


@relay
def log_softmax(x: VECTOR) -> float64:
    return relay.sum(relay.log_softmax(x, dim=0) * relay.sin(x))


@relay
def logsumexp(x: VECTOR) -> float64:
    return relay.logsumexp(x * x, dim=0)


@relay
def gelu_by_hand(x: VECTOR) -> float64:
    return relay.sum(x * (1.0 + relay.erf(x * 0.70710678118654752)) * 0.5)


@relay
def products(x: VECTOR) -> float64:
    return relay.prod(1.0 + x * x)


@relay
def means(x: VECTOR) -> float64:
    return relay.mean(x * x) - relay.mean(x) ** 2


@relay
def variance(x: VECTOR) -> float64:
    return relay.var(relay.exp(x))


@relay
def norms(x: VECTOR) -> float64:
    return relay.sqrt(relay.sum(x * x) + 1.0)


@relay
def cumulative_sums(x: VECTOR) -> float64:
    return relay.sum(relay.cumsum(x * x, dim=0) * relay.sin(x))


@relay
def cumulative_products(x: VECTOR) -> float64:
    return relay.sum(relay.cumprod(1.0 + x * x, dim=0))


@relay
def maxima(x: VECTOR) -> float64:
    return relay.max(x * x + x)


@relay
def minima(x: VECTOR) -> float64:
    return relay.min(relay.sin(x) * x)


@relay
def clamped(x: VECTOR) -> float64:
    return relay.sum(relay.clamp(x, min=-0.5, max=0.5) * x * x)


@relay
def absolute(x: VECTOR) -> float64:
    return relay.sum(relay.abs(x) * x * x)


@relay
def wheres(x: VECTOR) -> float64:
    return relay.sum(relay.where(x > 0.0, x * x, relay.sin(x)))


@relay
def safe_wheres(x: VECTOR) -> float64:
    return relay.sum(relay.where(x > 0.0, relay.log(relay.where(x > 0.0, x, 1.0)), 0.0))


@relay
def relus(x: VECTOR) -> float64:
    return relay.sum(relay.relu(x) ** 2)


@relay
def larger_of_two(x: VECTOR) -> float64:
    return relay.sum(relay.maximum(x * x, x + 1.0))


@relay
def shifted(x: VECTOR) -> float64:
    return relay.sum((x[1:] - x[:-1] ** 2) ** 2)


@relay
def elements(x: VECTOR) -> float64:
    return x[0] * relay.sin(x[1]) + x[2] * x[0]


@relay
def from_the_end(x: VECTOR) -> float64:
    return x[-1] * x[-2] * x[0]


@relay
def mirrored(x: VECTOR) -> float64:
    return relay.sum(relay.flip(x, dims=(0,)) * x * x)


@relay
def rolled(x: VECTOR) -> float64:
    return relay.sum(relay.roll(x, shifts=1, dims=0) * x * x)


@relay
def stacked(x: VECTOR) -> float64:
    return relay.sum(relay.stack((x, x * x)) ** 2)


@relay
def joined(x: VECTOR) -> float64:
    return relay.sum(relay.sin(relay.cat((x, x * x))))


@relay
def outer_products(x: VECTOR) -> float64:
    return relay.sum(relay.sin(x.reshape(3, 1) * x.reshape(1, 3)))


@relay
def expanded(x: VECTOR) -> float64:
    return relay.sum(x.reshape(3, 1).expand(3, 2) ** 3)


@relay
def sorted_values(x: VECTOR) -> float64:
    return relay.sum(relay.sort(x)[0] * relay.tensor([1.0, 2.0, 3.0], dtype=float64)) * x[0]


@relay
def gathered(x: VECTOR) -> float64:
    return relay.sum(relay.gather(x, 0, relay.tensor([2, 2, 0])) ** 3)


@relay
def added_at(x: VECTOR) -> float64:
    return relay.sum(relay.index_add(x, 0, relay.tensor([0, 0]), x[1:] * x[1:]) ** 2)


@relay
def stopped(x: VECTOR) -> float64:
    return relay.sum(relay.stop_gradient(relay.sin(x)) * x * x)


WEIGHTS: Final = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
FIRST: Final = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)


def constant(value: Any) -> Any:
    """Return a value through which no derivative flows."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    from jax import lax

    return lax.stop_gradient(value)


def safe_logarithms(m: Any, x: Any) -> Any:
    inside = m.where(x > 0.0, x, m.ones_like(x))
    return m.sum(m.where(x > 0.0, m.log(inside), m.zeros_like(x)))


CASES: Final = [
    Case(sines, (3,), lambda m, x: m.sum(m.sin(x) * x)),
    Case(cosines, (3,), lambda m, x: m.sum(m.cos(x) / (1.0 + x * x))),
    Case(tangent_of_sum, (3,), lambda m, x: m.tan(m.sum(x) * 0.1)),
    Case(exponentials, (3,), lambda m, x: m.sum(m.exp(-x * x))),
    Case(logarithms, (3,), lambda m, x: m.sum(m.log(1.0 + x * x))),
    Case(log1p_and_expm1, (3,), lambda m, x: m.sum(m.log1p(x * x) * m.expm1(x))),
    Case(hyperbolic, (3,), lambda m, x: m.sum(m.tanh(x) * m.cosh(x) - m.sinh(x * 0.5))),
    Case(inverse_tangents, (3,), lambda m, x: m.sum(m.arctan(x) * x)),
    Case(roots, (3,), lambda m, x: m.sum(m.sqrt(1.0 + x * x))),
    Case(reciprocal_roots, (3,), lambda m, x: m.sum(1.0 / m.sqrt(2.0 + x * x))),
    Case(powers, (3,), lambda m, x: m.sum(x**3) * m.sum(x**2)),
    Case(powers_of_tensors, (3,), lambda m, x: m.sum((1.0 + x * x) ** x)),
    Case(quotients, (3,), lambda m, x: m.sum(x) / m.sum(1.0 + x * x)),
    Case(sigmoids, (3,), lambda m, x: m.sum(x / (1.0 + m.exp(-x)))),
    Case(softplus, (3,), lambda m, x: m.sum(m.log(1.0 + m.exp(x)) ** 2)),
    Case(softmax, (3,), lambda m, x: m.sum(m.exp(x) / m.sum(m.exp(x)) * x)),
    Case(log_softmax, (3,), lambda m, x: m.sum((x - m.log(m.sum(m.exp(x)))) * m.sin(x))),
    Case(logsumexp, (3,), lambda m, x: m.log(m.sum(m.exp(x * x)))),
    in_torch(gelu_by_hand, (3,), lambda x: functional.gelu(x).sum()),
    Case(products, (3,), lambda m, x: m.prod(1.0 + x * x)),
    Case(means, (3,), lambda m, x: m.mean(x * x) - m.mean(x) ** 2),
    in_torch(variance, (3,), lambda x: torch.exp(x).var()),
    Case(norms, (3,), lambda m, x: m.sqrt(m.sum(x * x) + 1.0)),
    Case(cumulative_sums, (3,), lambda m, x: m.sum(m.cumsum(x * x, 0) * m.sin(x))),
    Case(cumulative_products, (3,), lambda m, x: m.sum(m.cumprod(1.0 + x * x, 0))),
    Case(maxima, (3,), lambda m, x: m.max(x * x + x)),
    Case(minima, (3,), lambda m, x: m.min(m.sin(x) * x)),
    in_torch(clamped, (3,), lambda x: (torch.clamp(x, -0.5, 0.5) * x * x).sum()),
    Case(absolute, (3,), lambda m, x: m.sum(m.abs(x) * x * x)),
    Case(wheres, (3,), lambda m, x: m.sum(m.where(x > 0.0, x * x, m.sin(x)))),
    Case(safe_wheres, (3,), safe_logarithms),
    Case(relus, (3,), lambda m, x: m.sum(m.where(x > 0.0, x, m.zeros_like(x)) ** 2)),
    in_torch(larger_of_two, (3,), lambda x: torch.maximum(x * x, x + 1.0).sum()),
    Case(shifted, (3,), lambda m, x: m.sum((x[1:] - x[:-1] ** 2) ** 2)),
    Case(elements, (3,), lambda m, x: x[0] * m.sin(x[1]) + x[2] * x[0]),
    Case(from_the_end, (3,), lambda m, x: x[-1] * x[-2] * x[0]),
    Case(mirrored, (3,), lambda m, x: m.sum(m.flip(x, (0,)) * x * x)),
    in_torch(rolled, (3,), lambda x: (torch.roll(x, 1, 0) * x * x).sum()),
    Case(stacked, (3,), lambda m, x: m.sum(m.stack((x, x * x)) ** 2)),
    Case(joined, (3,), lambda m, x: m.sum(m.sin(m.concatenate((x, x * x))))),
    Case(outer_products, (3,), lambda m, x: m.sum(m.sin(x.reshape(3, 1) * x.reshape(1, 3)))),
    in_torch(expanded, (3,), lambda x: (x.reshape(3, 1).expand(3, 2) ** 3).sum()),
    in_torch(sorted_values, (3,), lambda x: torch.sort(x)[0] @ WEIGHTS * x[0]),
    in_torch(gathered, (3,), lambda x: (x[torch.tensor([2, 2, 0])] ** 3).sum()),
    in_torch(added_at, (3,), lambda x: ((x + FIRST * (x[1:] ** 2).sum()) ** 2).sum()),
    Case(stopped, (3,), lambda m, x: m.sum(constant(m.sin(x)) * x * x)),
]
