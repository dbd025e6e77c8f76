"""Recursion in C: mutual, in tail position, and as deep as calls may wait for each other."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Bool, Float, Int, options, relay
from tests.unit.lower_c.functions.compared import agree, counted, integer, outcome

pytestmark = pytest.mark.host("lowerings are chosen here")


@relay
def fib(n: Int) -> Int:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@relay
def ackermann(m: Int, n: Int) -> Int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@relay
def is_even(n: Int) -> Bool:
    return True if n == 0 else is_odd(n - 1)


@relay
def is_odd(n: Int) -> Bool:
    return False if n == 0 else is_even(n - 1)


@relay
def gcd(a: Int, b: Int) -> Int:
    return a if b == 0 else gcd(b, a % b)


@relay
def extended(a: Int, b: Int) -> tuple[Int, tuple[Int, Int]]:
    if b == 0:
        return a, (1, 0)
    found, (x, y) = extended(b, a % b)
    return found, (y, x - (a // b) * y)


@relay
def female(n: Int) -> Int:
    return 1 if n == 0 else n - male(female(n - 1))


@relay
def male(n: Int) -> Int:
    return 0 if n == 0 else n - female(male(n - 1))


@relay
def down(n: Int) -> Int:
    if n == 0:
        return 0
    return down(n - 1) + 1


@relay
def halves(x: Float, n: Int) -> Float:
    if n == 0:
        return x
    return halves(x * 0.5, n - 1) + halves(x * 0.25, n - 1)


def test_recursion_has_the_values_of_host_code() -> None:
    assert agree(fib, 20) == integer(6765)
    agree(ackermann, 2, 30)
    agree(halves, torch.tensor(3.0), 8)
    for n in range(20):
        agree(female, n)
        agree(male, n)


def test_tail_calls_are_jumps() -> None:
    for n in (0, 1, 999_999):
        agree(is_even, n)
    agree(gcd, 1071, 462)
    with options(lowering="c"), counted() as ran:
        assert not is_even(20_000_001)
    assert ran == ["relay_is_even"]


def test_tuples_in_tuples_are_results() -> None:
    assert agree(extended, 240, 46) == (integer(2), (integer(-9), integer(47)))


def test_calls_that_have_no_room_on_the_stack_get_one_of_their_own() -> None:
    with options(lowering="c"), counted() as ran:
        assert down(100) == 100
        assert down(900_000) == 900_000
    assert ran == ["relay_down", "relay_down"]


def test_too_many_calls_that_wait_are_the_same_error() -> None:
    assert "RL5" in agree(down, 2_000_000)
    for limit in (150, 400):
        for n in range(limit - 3, limit + 3):
            with options(max_depth=limit):
                agree(down, n)


def test_without_a_thread_the_host_runs_what_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyrelay.lower_c.functions import call

    @relay
    def fall(n: Int) -> Int:
        return 0 if n == 0 else fall(n - 1) + 1

    monkeypatch.setattr(call, "STACK", 1 << 62)
    with options(lowering="c"), counted() as ran:
        assert fall(50_000) == 50_000
    assert ran == []


def test_mutual_recursion_without_an_end_is_an_error() -> None:
    @relay
    def there(n: Int) -> Int:
        return back(n + 1) - 1

    @relay
    def back(n: Int) -> Int:
        return there(n) - 1

    with options(max_depth=500):
        assert agree(there, 0) == outcome(there, 0)
