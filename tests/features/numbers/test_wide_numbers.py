"""Numbers that the program states, and what is computed of them, beside float64: as Python's."""

import math

import torch

from pyrelay import Dim, Float, Tensor, float64, relay

N = Dim("N")
Vector = Tensor[float64, (N,)]


@relay
def scaled(x: Vector):
    third = 1.0 / 3.0
    return (
        x * (1 / 3),
        x + 0.1 * 3,
        x * third,
        x / math.sqrt(2.0) + relay.sqrt(2.0),
        x + 2 / len(x),
        x.sum() * 2 + 1 / 3,
    )


def test_what_is_computed_of_literals_and_sizes_is_exact() -> None:
    x = torch.tensor([1.0, 0.7], dtype=torch.float64)
    expected = (
        x * (1 / 3),
        x + 0.1 * 3,
        x * (1.0 / 3.0),
        x / math.sqrt(2.0) + math.sqrt(2.0),
        x + 2 / 2,
        x.sum() * 2 + 1 / 3,
    )
    for run in (scaled, scaled.interpret):
        for found, wanted in zip(run(x), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-15, atol=0.0)


@relay
def steps(x: float64, n: int) -> float64:
    size = 1.0 / 10
    for i in range(n):
        x = x + size * relay.cos(i * size)
    return x


def test_a_number_that_a_loop_uses_is_exact() -> None:
    expected = 0.5
    for i in range(5):
        expected += 0.1 * math.cos(i * 0.1)
    found = steps(torch.tensor(0.5, dtype=torch.float64), 5)
    torch.testing.assert_close(
        found, torch.tensor(expected, dtype=torch.float64), rtol=1e-15, atol=0
    )


@relay
def both(x: Vector, y: Tensor[Float, (N,)]):
    half = 0.3 + 0.2
    return x * half, y * half, half


def test_a_number_beside_both_widths_is_wide_and_narrowed_where_it_is_used() -> None:
    x, y, half = both(torch.ones(1, dtype=torch.float64), torch.ones(1))
    dtypes = x.dtype, y.dtype, torch.as_tensor(half).dtype
    assert dtypes == (torch.float64, torch.float32, torch.float64)


@relay
def alone(x: Tensor[Float, (N,)]):
    return x * (1 / 3), 1 / 3


def test_alone_and_beside_float32_it_stays_float32() -> None:
    x, third = alone(torch.ones(1))
    assert (x.dtype, torch.as_tensor(third).dtype) == (torch.float32, torch.float32)
