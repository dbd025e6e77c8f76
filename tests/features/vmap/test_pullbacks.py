"""Pullbacks of functions whose cells outlive a call, mapped over cotangents, as jacobians are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Fn, Int, Ref, Tensor, float64, options, relay

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N, M = Dim("N"), Dim("M")
VECTOR = Tensor[float64, (N,)]
NUMBERS = Tensor[float64, (M,)]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def agree(function: Any, args: tuple[Any, ...], expected: torch.Tensor) -> None:
    torch.testing.assert_close(function.interpret(*args), expected)
    for lowering in ("torch", "c"):
        with options(lowering=lowering):
            for _ in range(2):  # a backend may leave first calls to torch
                torch.testing.assert_close(function(*args), expected)


@relay
def bumped(cell: Ref[float64], x: float64, n: Int) -> float64:
    if n == 0:
        return cell.value
    cell.value = cell.value * relay.cos(x) + x
    return bumped(cell, x, n - 1) + cell.value


@relay
def swung(x: float64, n: Int) -> float64:
    return bumped(relay.ref(x * 2.0), x, n)


def plain_swung(x: torch.Tensor) -> torch.Tensor:
    value = x * 2.0
    for _ in range(3):
        value = value * torch.cos(x) + x
    return 4 * value


@relay
def swings(x: float64, gs: NUMBERS, n: Int) -> NUMBERS:
    _, pull = relay.vjp(lambda z: swung(z, n))(x)
    return relay.vmap(pull)(gs)


def test_cells_that_recursion_passes_on() -> None:
    xs, n = random(3), 3
    slopes = torch.stack([torch.func.grad(plain_swung)(x) for x in xs])
    agree(swings, (xs[0], random(4, seed=1), n), random(4, seed=1) * slopes[0])
    agree(relay.vmap(relay.grad(swung, wrt="x"), in_axes=(0, None)), (xs, n), slopes)


@relay
def stirred(x: VECTOR) -> VECTOR:
    cell = relay.ref(x)

    def stir(k: float64) -> float64:
        cell.value = cell.value * k + relay.sin(cell.value)
        return 0.0

    def go(n: Int, f: Fn[[float64], float64]) -> float64:
        if n == 0:
            return 0.0
        return f(0.5) + go(n - 1, f)

    nothing = go(3, stir)
    return cell.value + nothing


def plain_stirred(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x * 0.5 + torch.sin(x)
    return x


def test_functions_that_take_no_cotangent_find_those_of_each_element_in_cells() -> None:
    x = random(4)
    expected = torch.func.jacrev(plain_stirred)(x)
    for mode in (relay.jacrev, relay.jacfwd):
        agree(mode(stirred), (x,), expected)


@relay
def written(cell: Ref[VECTOR], x: VECTOR) -> float64:
    cell.value = cell.value * x
    return (cell.value * x).sum()


@relay
def rates(x: VECTOR, gs: NUMBERS) -> Tensor[float64, (M, N)]:
    cell = relay.ref(x)
    _, pull = relay.vjp(lambda z: written(cell, z))(x)
    return relay.vmap(pull)(gs)


def test_cells_from_around_the_function() -> None:
    x, gs = random(4), random(3, seed=1)
    agree(rates, (x, gs), gs[:, None] * 2.0 * x * x)
