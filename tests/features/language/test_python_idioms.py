"""Idioms of everyday Python, each against plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, RunError, Tensor, relay

K = Dim("K")


@relay
def square(x: Float) -> Float:
    return x * x


def steps(xs: list[Float]) -> Float:
    return sum((after - before) * before for before, after in pairwise(xs))


def steps_of_rows(x: Tensor[Float, (K,)]) -> Float:
    total = 0.0
    for i, (before, after) in enumerate(itertools.pairwise(x * 2.0)):
        total += i * before * after
    return total


def steps_of_a_range(n: int) -> int:
    return sum([i * j for i, j in pairwise(range(n))])


def steps_of_what_is_computed(xs: list[Float]) -> Float:
    total = 0.0
    for before, after in pairwise(sorted(xs)):
        total += 3.0 * after - before
    for before, after in pairwise([x * 2.0 for x in xs]):
        total += 5.0 * after - before
    for before, after in pairwise(map(square, xs)):
        total += 7.0 * after - before
    return total


def kept(xs: list[Float]) -> Float:
    item = 1.5
    total = 0.0
    for x in filter(lambda x: x > item, xs):
        total += x
    small = list(filter(lambda x: x < item, xs))
    return total + 10.0 * sum(small) + len(small) + max(filter(lambda x: x < 9.0, xs))


def kept_beside_all(xs: list[Float]) -> Float:
    return sum(x * y for x, y in zip(filter(lambda x: x > 1.0, xs), xs))


def squares_side_by_side(xs: list[Float]) -> Float:
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, map(square, xs), strict=True)):
        total += i * x * y
    return total + sum(x - y for x, y in zip(xs, map(square, xs), strict=True))


def ones(n: int) -> int:
    count = 0
    while n:
        if n % 2:
            count += 1
        n //= 2
    return count


def bits_set(n: int) -> int:
    count, odd = 0, 0
    while n:
        odd = odd ^ (n & 1) | (odd & 2)
        n = n & (n - 1)
        count += 1
    return 100 * count + odd + (~count)


def halvings(x: float) -> int:
    count = 0
    while (x and count < 5) or not count:
        x = 0.0 if x < 1.0 else x / 2.0
        count += 1 if x else 10
    return count


def letters(word: str) -> int:
    other = word if word else "none"
    return (1 if word else 2) + (4 if not word and other else 8)


def left_over(xs: list[Float]) -> float:
    rest = [x for x in xs if x > 1.0]
    total = 0.0
    while rest and total < 9.0:
        total += float(rest.pop())
    return total + (1.0 if rest else 0.5) + (0.25 if len(xs) else 0.125)


XS = [3.0, 1.0, 2.0, 8.0]
PROGRAMS = [
    *((steps, xs) for xs in (XS, XS[:1], [])),
    (steps_of_rows, torch.arange(4.0)),
    *((steps_of_a_range, n) for n in (0, 1, 5)),
    (steps_of_what_is_computed, XS),
    (kept, XS),
    (kept_beside_all, XS),
    (squares_side_by_side, XS),
    *((ones, n) for n in (0, 1, 11, -1 + 2**40)),
    *((bits_set, n) for n in (0, 7, 255, 2**40 + 5)),
    *((halvings, x) for x in (0.0, 0.75, 3.0, float("nan"))),
    *((letters, word) for word in ("", "abc")),
    *((left_over, xs) for xs in (XS, XS[1:2], [])),
]


@pytest.mark.parametrize(("program", "argument"), PROGRAMS)
def test_an_idiom_computes_what_python_does(program: Callable[..., Any], argument: Any) -> None:
    expected = float(program(argument))
    assert float(relay(program)(argument)) == pytest.approx(expected, rel=1e-6)


def test_a_strict_zip_compares_lengths() -> None:
    @relay
    def paired(xs: list[Float], ys: list[Float]) -> Float:
        return sum(x * y for x, y in zip(xs, map(square, ys), strict=True))

    assert float(paired([1.0, 2.0], [3.0, 4.0])) == 41.0
    with pytest.raises(RunError):
        paired([1.0, 2.0], [3.0])
