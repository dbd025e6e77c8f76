"""Fixed points and roots: gradients of the equations against those of unrolled iterations."""

# pyright: reportInvalidTypeForm=false
# Annotations mention the dtype that a function is made for.

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, float64, relay
from pyrelay.models.implicit import fixed_point, fixed_point_in, implicit_root, implicit_root_in

N = Dim("N")
Vector = Tensor[Float, (N,)]


@relay
def step(a: Vector, x: Vector) -> Vector:
    return relay.cos(x) * 0.5 + a


@relay
def loss(a: Vector) -> Float:
    return (fixed_point(step, a, relay.zeros_like(a)) ** 2).sum()


def unrolled(a: torch.Tensor) -> torch.Tensor:
    x = torch.zeros_like(a)
    for _ in range(60):
        x = torch.cos(x) * 0.5 + a
    return (x**2).sum()


def test_the_gradient_of_a_fixed_point_is_that_of_the_unrolled_iteration() -> None:
    a = torch.tensor([0.1, 0.5, 0.9])
    torch.testing.assert_close(loss(a), unrolled(a))
    expected = torch.func.grad(unrolled)(a)
    torch.testing.assert_close(relay.grad(loss)(a), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(relay.grad(loss).interpret(a), expected, atol=1e-4, rtol=1e-4)


@relay
def affine(a: tuple[Tensor[Float, (N, N)], Vector], x: Vector) -> Vector:
    w, b = a
    return relay.tanh(w @ x + b)


@relay
def equilibrium(w: Tensor[Float, (N, N)], b: Vector) -> Float:
    return fixed_point(affine, (w, b), relay.zeros_like(b)).sum()


def test_parameters_of_a_fixed_point_may_be_of_any_type() -> None:
    def plain(w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = torch.zeros_like(b)
        for _ in range(200):
            x = torch.tanh(w @ x + b)
        return x.sum()

    generator = torch.Generator().manual_seed(0)
    w, b = 0.2 * torch.randn(4, 4, generator=generator), torch.randn(4, generator=generator)
    expected = torch.func.grad(plain, argnums=(0, 1))(w, b)
    torch.testing.assert_close(relay.grad(equilibrium)(w, b), expected, atol=1e-4, rtol=1e-4)


@relay
def cubic(a: Vector, x: Vector) -> Vector:
    return x * x * x + x - a


@relay
def newton(a: Vector) -> Vector:
    x = a
    for _ in range(30):
        x = x - cubic(a, x) / (3.0 * x * x + 1.0)
    return x


@relay
def of_root(a: Vector) -> Float:
    return (implicit_root(cubic, newton, a) ** 2).sum()


def test_the_gradient_of_a_root_follows_from_the_equation() -> None:
    a = torch.tensor([0.5, 1.0, 3.0])

    def plain(a: torch.Tensor) -> torch.Tensor:
        x = a
        for _ in range(30):
            x = x - (x**3 + x - a) / (3.0 * x * x + 1.0)
        return (x**2).sum()

    torch.testing.assert_close(of_root(a), plain(a))
    expected = torch.func.grad(plain)(a)
    torch.testing.assert_close(relay.grad(of_root)(a), expected, atol=1e-4, rtol=1e-4)


def losses(dtype: Any) -> dict[str, Any]:
    """Return the square of `x` with `x = cos(x) / 2 + a`, and with `x * x * x + x = a`."""
    point, root = fixed_point_in(dtype), implicit_root_in(dtype)

    @relay
    def step(a: Tensor[dtype, (N,)], x: Tensor[dtype, (N,)]) -> Tensor[dtype, (N,)]:
        return 0.5 * relay.cos(x) + a

    @relay
    def of_point(a: Tensor[dtype, (N,)]) -> dtype:
        return (point(step, a, relay.zeros_like(a)) ** 2).sum()

    @relay
    def residual(a: Tensor[dtype, (N,)], x: Tensor[dtype, (N,)]) -> Tensor[dtype, (N,)]:
        return x * x * x + x - a

    @relay
    def solve(a: Tensor[dtype, (N,)]) -> Tensor[dtype, (N,)]:
        x = a
        for _ in range(30):
            x = x - residual(a, x) / (3.0 * x * x + 1.0)
        return x

    @relay
    def of_root(a: Tensor[dtype, (N,)]) -> dtype:
        return (root(residual, solve, a) ** 2).sum()

    return {"point": of_point, "root": of_root}


def by_hand(kind: str, a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return `x`, and `dx / da` and its derivative by the implicit function theorem."""
    x = a
    for _ in range(200):
        x = 0.5 * x.cos() + a if kind == "point" else x - (x**3 + x - a) / (3.0 * x * x + 1.0)
    if kind == "point":
        slope = 1.0 / (1.0 + 0.5 * x.sin())
        return x, slope, -0.5 * x.cos() * slope**3
    slope = 1.0 / (3.0 * x * x + 1.0)
    return x, slope, -6.0 * x * slope**3


@pytest.mark.parametrize("kind", ["point", "root"])
@pytest.mark.parametrize(("dtype", "limit"), [(Float, 1e-6), (float64, 1e-11)])
def test_derivatives_are_those_of_the_implicit_function_theorem(
    dtype: Any, limit: float, kind: str
) -> None:
    own = torch.float64 if dtype is float64 else torch.float32
    a, v = torch.tensor([0.1, 0.5, 0.9], dtype=own), torch.tensor([1.0, -2.0, 0.5], dtype=own)
    x, slope, bend = by_hand(kind, a.double())
    loss = losses(dtype)[kind]
    found = [
        loss(a),
        relay.grad(loss)(a),
        relay.jvp(loss)((a,), (v,))[1],
        relay.hvp(loss)((a,), (v,)),
    ]
    gradient = 2.0 * x * slope
    wanted = [(x * x).sum(), gradient, gradient @ v.double()]
    wanted.append((2.0 * slope * slope + 2.0 * x * bend) * v.double())
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=limit, rtol=limit)
