"""Views in C functions: read where they lie, and copied where something else needs them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, options, relay
from tests.unit.lower_c.functions.compared import counted

pytestmark = pytest.mark.host("lowerings are chosen here")

N, S, K = Dim("N"), Dim("S"), Dim("K")


@relay
def turned_products(
    n: Int, x: Tensor[Float, (S, K)], y: Tensor[Float, (S, N)]
) -> tuple[
    Tensor[Float, (N, K - 1)],
    Tensor[Float, ((K - 1) * N,)],
    Tensor[Float, (N * K,)],
    Tensor[Float, (N, K)],
    Tensor[Float, (N,)],
]:
    """Multiply transposed, cut, flattened and repeated tensors."""
    total = relay.zeros((x.shape[1], y.shape[1]))
    for i in range(n):
        y = y * 0.5 + i
        total = total + x.T @ y
    half = total[1:]
    middle = relay.sin(half.T) + half.T[:, 0].unsqueeze(1).expand(y.shape[1], x.shape[1] - 1)
    return (
        middle,
        half.flatten(),
        total.T.flatten(),
        total.reshape(y.shape[1], x.shape[1]),
        total[0],
    )


@relay
def carried_views(n: Int, x: Tensor[Float, (S, S)]) -> Tensor[Float, (S, S)]:
    """Carry a view from round to round."""
    y = x
    for i in range(n):
        z = x.flatten() * 0.5
        x, y = y.T, z.reshape(x.shape[0], x.shape[0]) + i
        y = y.flatten().reshape(x.shape[0], x.shape[0])
    return x + y


@relay
def recurrent_loss(
    w: Tensor[Float, (K, K)], xs: Tensor[Float, (N, S, K)], start: Tensor[Float, (S, K)]
) -> Float:
    """Return a number that depends on the last state."""
    state = start
    for x in xs:
        state = relay.tanh(x @ w.T + state @ w)
    return relay.sum(state**2)


@relay
def replaced_sum(x: Tensor[Float, (N,)], n: Int) -> Float:
    """Return a sum, or a number: its gradient stretches a number to a tensor."""
    b = x.sum()
    while n > 0:
        b = 1
        n -= 1
    return b


@relay
def stretched(x: Float, n: Int) -> Tensor[Float, (3,)]:
    """Make a tensor of one number, and carry it."""
    y = relay.zeros((3,))
    for _ in range(n):
        y = y + x.reshape((1,)) * x.unsqueeze(0)
        x = x + 1.0
    return y


@relay
def stretched_sum(x: Float, n: Int) -> Float:
    """Return a number that depends on the tensor."""
    return (stretched(x, n) ** 2).sum()


def numbers(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)


def check(function: Any, *args: Any) -> None:
    """Check that C and host code give the same, but for the order of sums."""
    with options(lowering="torch"):
        expected = function(*args)
    with options(lowering="c"), counted() as ran:
        found = function(*args)
    assert ran, "C did not run"
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("sizes", [(3, 2, 2), (20, 17, 40), (1, 3, 1)])
def test_views_lie_in_the_memory_of_what_they_show(sizes: tuple[int, int, int]) -> None:
    rows, columns, others = sizes
    check(turned_products, 3, numbers(rows, columns), numbers(rows, others))


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_loop_carries_the_elements_of_a_view(rounds: int) -> None:
    check(carried_views, rounds, numbers(5, 5))


@pytest.mark.parametrize("rows", [1, 20])
def test_the_terms_of_a_weight_are_multiplied_where_they_lie(rows: int) -> None:
    gradient = relay.value_and_grad(recurrent_loss, wrt="w")
    check(gradient, numbers(24, 24) * 0.1, numbers(6, rows, 24), numbers(rows, 24))


@relay
def rows(n: Int, x: Tensor[Float, (S, K, 3)]) -> tuple[Tensor[Float, (3,)], Tensor[Float, (K, 3)]]:
    """Keep rows of what a loop carries and of what it makes."""
    kept, last = x[0, 0], x[-1]
    for i in range(n):
        y = x * 0.5 + i
        kept, last = y[i % 2, -1] + kept, x[i % 2]
        x = y
    return kept, last


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_a_row_is_read_where_it_lies(rounds: int) -> None:
    check(rows, rounds, numbers(2, 4, 3))


def test_a_row_that_does_not_exist_is_an_error() -> None:
    with options(lowering="c"), pytest.raises(RunError, match="out of range"):
        rows(1, numbers(1, 4, 3)[:0])


@pytest.mark.parametrize("count", [0, 2])
def test_views_of_numbers_are_tensors(count: int) -> None:
    check(relay.grad(replaced_sum), numbers(4), count)
    check(stretched, torch.tensor(0.5), count)
    check(relay.grad(stretched_sum), torch.tensor(0.5), count)
