"""Floats in C: the functions of numbers."""

from __future__ import annotations

import math

import pytest
import torch

from pyrelay import Bool, Float, Int, float64, options, relay
from tests.unit.lower_c.functions.compared import agree, counted

pytestmark = pytest.mark.host("lowerings are chosen here")

NUMBERS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.5, 1e-30, 3e38, math.inf, -math.inf, math.nan)


@relay
def arithmetic(
    n: Int, x: float64, y: float64
) -> tuple[float64, float64, float64, float64, float64]:
    a, b, c, d, e = x, x, x, x, x
    for _ in range(n):
        a, b, c, d, e = x + y, x - y, x * y, x / y, -x
    return a, b, c, d, e


@relay
def divided(n: Int, x: Float, y: Float) -> tuple[Float, Float]:
    a, b = x, x
    for _ in range(n):
        a, b = x // y, x % y
    return a, b


@relay
def chosen(n: Int, x: Float, y: Float) -> tuple[Float, Float, Float, Float, Bool, Bool]:
    a, b, c, d, e, f = x, x, x, x, False, False
    for _ in range(n):
        # The sum forgets the sign of zero: which of two zeros is the smaller, torch leaves open.
        a, b, c = relay.minimum(x, y) + 0.0, relay.maximum(x, y) + 0.0, relay.sign(x)
        d, e, f = relay.where(x < y, x, y), relay.isnan(x), relay.isfinite(y)
    return a, b, c, d, e, f


@relay
def rounded(n: Int, x: Float, y: Float) -> tuple[Float, Float, Float, Float, Float]:
    a, b, c, d, e = x, x, x, x, x
    for _ in range(n):
        a, b, c = relay.floor(x), relay.ceil(x), relay.round(x)
        d, e = abs(x), -y
    return a, b, c, d, e


@pytest.mark.parametrize("x", NUMBERS)
@pytest.mark.parametrize("function", [divided, chosen, rounded])
def test_single_floats_have_the_bits_of_torch(function, x: float) -> None:
    for y in NUMBERS:
        agree(function, 1, torch.tensor(x), torch.tensor(y))


@pytest.mark.parametrize("x", NUMBERS)
def test_doubles_have_the_bits_of_torch(x: float) -> None:
    for y in NUMBERS:
        operands = (torch.tensor(v, dtype=torch.float64) for v in (x, y))
        agree(arithmetic, 1, *operands)


@relay
def functions(n: Int, x: Float) -> tuple[Float, Float, Float, Float, Float, Float, Float]:
    a, b, c, d, e, f, g = x, x, x, x, x, x, x
    for _ in range(n):
        a, b, c = relay.exp(x), relay.log(abs(x)), relay.sin(x)
        d, e, f = relay.tanh(x), relay.sigmoid(x), relay.erf(x)
        g = relay.gelu(x) + relay.softplus(x) + abs(x) ** 1.5 + relay.sqrt(abs(x))
    return a, b, c, d, e, f, g


@pytest.mark.parametrize("x", [0.0, 0.3, -2.0, 15.0, 88.0, -100.0, math.inf, -math.inf, math.nan])
def test_functions_of_real_numbers_are_close_to_those_of_torch(x: float) -> None:
    with options(lowering="torch"):
        expected = functions(1, torch.tensor(x))
    with options(lowering="c"), counted() as ran:
        found = functions(1, torch.tensor(x))
    assert ran
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)


@relay
def root(a: Float) -> Float:
    x = a
    while abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
    return x


def test_a_loop_that_values_end_has_the_bits_of_torch() -> None:
    for value in (2.0, 3.0, 1e10, 1e-6):
        agree(root, torch.tensor(value))
