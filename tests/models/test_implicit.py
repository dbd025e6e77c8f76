"""Fixed points and roots: gradients of the equations against those of unrolled iterations."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.models.implicit import fixed_point, implicit_root

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
