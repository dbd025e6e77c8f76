"""Integers in C are those of Python, within the range of their dtype."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Bool, Float, Int, float64, int8, int32, relay
from tests.unit.lower_c.functions.compared import agree, integer

pytestmark = pytest.mark.host("lowerings are chosen here")

LOWEST, HIGHEST = -(2**63), 2**63 - 1
EDGES = (0, 1, -1, 2, -2, 3, -7, 10, 2**31, 2**32 - 1, 2**62, -(2**62), LOWEST, LOWEST + 1, HIGHEST)


@relay
def added(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a + b
    return a


@relay
def subtracted(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a - b
    return a


@relay
def multiplied(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a * b
    return a


@relay
def divided(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a // b
    return a


@relay
def left_over(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a % b
    return a


@relay
def raised(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a**b
    return a


@relay
def signs(n: Int, a: Int, b: Int) -> tuple[Int, Int, Int, Int, Int]:
    low, high, sign, size, minus = 0, 0, 0, 0, 0
    for _ in range(n):
        low, high = relay.minimum(a, b), relay.maximum(a, b)
        sign, size, minus = relay.sign(a), abs(a), -a
    return low, high, sign, size, minus


@relay
def squared(n: Int, a: Int, b: Int) -> Int:
    for _ in range(n):
        a = a * a - b
    return a


@relay
def compared(n: Int, a: Int, b: Int) -> tuple[Bool, Bool, Bool, Bool]:
    less, equal, both, either = False, False, False, False
    for _ in range(n):
        less, equal = a < b, a == b
        both, either = a <= b and a != b, a > b or b >= 3
    return less, equal, both, either


@pytest.mark.parametrize("b", EDGES)
@pytest.mark.parametrize(
    "function", [added, subtracted, multiplied, divided, left_over, signs, squared, compared]
)
def test_arithmetic_agrees_at_the_edges(function, b: int) -> None:
    for a in EDGES:
        agree(function, 1, a, b)


@pytest.mark.parametrize("b", [-1, 0, 1, 2, 3, 31, 62, 63, 64, 1000])
def test_powers_are_those_of_python(b: int) -> None:
    for a in (0, 1, -1, 2, -2, 3, 10, 2**31, 3037000499, HIGHEST, LOWEST):
        agree(raised, 1, a, b)


def test_what_overflows_later_stops_later() -> None:
    assert "RL512" in agree(multiplied, 100, 1, 3)
    assert agree(multiplied, 39, 1, 3) == integer(3**39)


@relay
def small(n: Int, a: int8, b: int8) -> tuple[int8, int8, int8]:
    c = a
    for _ in range(n):
        c = c + b
        a = a * b
    return a, c, a // b


def test_narrow_integers_wrap_around() -> None:
    for a in (-128, -1, 0, 5, 127):
        for b in (-128, -1, 1, 3, 127, 0):
            agree(small, 3, torch.tensor(a, dtype=torch.int8), torch.tensor(b, dtype=torch.int8))


@relay
def middling(n: Int, a: int32) -> int32:
    for i in range(n):
        a = a * 3 + relay.cast(i, relay.int32)
    return a


def test_integers_of_32_bits_wrap_around() -> None:
    agree(middling, 100, torch.tensor(77, dtype=torch.int32))


@relay
def whole(n: Int, x: Float) -> Int:
    found = 0
    for _ in range(n):
        found = int(x)
    return found


@relay
def whole_of_double(n: Int, x: float64) -> int32:
    found = relay.cast(0, relay.int32)
    for _ in range(n):
        found = relay.cast(x, relay.int32)
    return found


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("x", [0.0, -0.5, 2.7, -2.7, 1e9, 9.2e18, 9.3e18, -9.3e18, INF, -INF, NAN])
def test_floats_become_integers_or_stop_the_program(x: float) -> None:
    found = agree(whole, 1, torch.tensor(x))
    assert ("RL517" in str(found)) == (not abs(x) < 9.23e18)


@pytest.mark.parametrize(
    "x", [2147483647.5, 2147483648.0, -2147483648.9, -2147483649.0, 1e300, NAN, -0.0]
)
def test_doubles_become_narrow_integers_or_stop_the_program(x: float) -> None:
    agree(whole_of_double, 1, torch.tensor(x, dtype=torch.float64))


@relay
def as_float(n: Int, a: Int) -> tuple[Float, Float]:
    x, y = 0.0, 0.0
    for _ in range(n):
        x, y = float(a), a / 3
    return x, y


def test_integers_become_floats() -> None:
    for a in EDGES:
        agree(as_float, 1, a)
