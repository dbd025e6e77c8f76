"""The order of operands does not matter to inference: a size that the program finds while it runs
gives way to one that the arguments show."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay

N, M, K = Dim("N"), Dim("M"), Dim("K")
H, P = torch.arange(3.0), torch.arange(6.0)


@relay
def slice_last(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = h * 0.5 + p[k : k + n]
    return h


@relay
def slice_first(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = p[k : k + n] + h * 0.5
    return h


@relay
def chosen_last(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.where(h > 1.0, h, p[k : k + n])
    return h


@relay
def chosen_first(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.where(p[k : k + n] > 1.0, p[k : k + n], h)
    return h


@relay
def larger_last(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.maximum(h, p[k : k + n])
    return h


@relay
def larger_first(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.maximum(p[k : k + n], h)
    return h


@relay
def stacked_last(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.stack((h, p[k : k + n])).sum(dim=0)
    return h


@relay
def stacked_first(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.stack((p[k : k + n], h)).sum(dim=0)
    return h


@relay
def joined_last(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.cat((h[None], p[k : k + n][None])).sum(dim=0)
    return h


@relay
def joined_first(h: Tensor[Float, (N,)], p: Tensor[Float, (M,)], k: int, n: Dim("n")):
    for _ in range(2):
        h = relay.cat((p[k : k + n][None], h[None])).sum(dim=0)
    return h


def _twice(step: Any) -> torch.Tensor:
    return step(step(H))


PART = P[1:4]


@pytest.mark.parametrize(
    ("functions", "step"),
    [
        ((slice_last, slice_first), lambda h: h * 0.5 + PART),
        ((larger_last, larger_first), lambda h: torch.maximum(h, PART)),
        ((stacked_last, stacked_first), lambda h: h + PART),
        ((joined_last, joined_first), lambda h: h + PART),
    ],
)
def test_both_orders_are_accepted(functions: tuple[Any, Any], step: Any) -> None:
    for f in functions:
        assert str(f.type).endswith("-> Tensor[Float, (N,)]")
        torch.testing.assert_close(f(H, P, 1, 3), _twice(step))
        torch.testing.assert_close(f.interpret(H, P, 1, 3), _twice(step))


def test_a_choice_keeps_the_size_that_is_shown() -> None:
    torch.testing.assert_close(
        chosen_last(H, P, 1, 3), _twice(lambda h: torch.where(h > 1, h, PART))
    )
    torch.testing.assert_close(
        chosen_first(H, P, 1, 3), _twice(lambda h: torch.where(PART > 1, PART, h))
    )


@relay
def found(x: Tensor[Float, (N,)], indices: Tensor[Int, (K,)]):
    kept = x[x > 0.5]
    return kept + x[indices], x[indices] + kept


def test_a_size_that_is_selected_gives_way_on_both_sides() -> None:
    first, second = found(H, torch.tensor([0, 1]))
    assert first.tolist() == second.tolist() == [1, 3]
    assert str(found.type).endswith("-> tuple[Tensor[Float, (K,)], Tensor[Float, (K,)]]")
