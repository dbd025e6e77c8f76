"""Loops, branches and what stops a program, in C as in host code."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Bool, Float, Int, options, relay
from tests.unit.lower_c.functions.compared import agree, counted, integer

pytestmark = pytest.mark.host("lowerings are chosen here")


@relay
def collatz(n: Int) -> Int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@relay
def triangles(n: Int) -> Int:
    total = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 3 == 0:
                continue
            if j > 7:
                break
            total += i * j
    return total


@relay
def primes(n: Int) -> tuple[Int, Int]:
    count, last = 0, 0
    for i in range(2, n):
        is_prime = True
        d = 2
        while d * d <= i:
            if i % d == 0:
                is_prime = False
                break
            d += 1
        if is_prime:
            count, last = count + 1, i
    return count, last


@relay
def swapped(n: Int) -> tuple[Int, Int, Int]:
    a, b, c = 1, 2, 3
    for _ in range(n):
        a, b, c = b, c, a
    return a, b, c


@relay
def first_above(n: Int, limit: Int) -> Int:
    for i in range(n):
        for j in range(n):
            if i * j > limit:
                return i * n + j
    return -1


@relay
def backwards(n: Int) -> Int:
    total = 0
    for i in range(n, 0, -2):
        total = total * 10 % 1_000_003 + i
    return total


@relay
def sampled(n: Int, seed: Int) -> Float:
    inside, state = 0, seed
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2147483648
        x = state / 2147483648
        state = (state * 1103515245 + 12345) % 2147483648
        y = state / 2147483648
        if x * x + y * y < 1.0:
            inside += 1
    return 4 * inside / n


@relay
def flags(n: Int) -> Bool:
    found = False
    for i in range(n):
        found = not found if i % 3 == 0 else found and i % 2 == 0
    return found


@relay
def with_local_function(n: Int, x: Float) -> Float:
    def slope(at: Float) -> Float:
        return 0.5 - at * at

    for _ in range(n):
        x = x + 0.25 * slope(x)
    return x


def test_loops_have_the_values_of_host_code() -> None:
    for n in (1, 2, 3, 27, 97):
        agree(collatz, n)
    for n in (0, 1, 2, 15, 30):
        for function in (triangles, primes, swapped, backwards, flags):
            agree(function, n)
        agree(first_above, n, 50)
    agree(sampled, 100, 7)
    agree(with_local_function, 9, 0.75)


@relay
def guarded(n: Int) -> Int:
    total = 0
    for i in range(n):
        assert i < 5, "too far"
        if total > 100:
            raise ValueError("too much")
        total += 10 // (i - 3) if n > 10 else i * 40
    return total


def test_what_stops_a_program_is_the_same_error() -> None:
    assert agree(guarded, 3) == integer(120)
    assert "RL501" in agree(guarded, 5)
    assert "RL504" in agree(guarded, 11) or "divi" in agree(guarded, 11)
    assert agree(guarded, 0) == integer(0)


@relay
def matched(n: Int) -> Int:
    total = 0
    for i in range(n):
        match i % 4, i % 2 == 0:
            case 0, True:
                total += 1
            case 1, even:
                total += 10 if even else 20
            case rest, _:
                total += rest * 100
    return total


def test_matches_on_numbers_agree() -> None:
    for n in (0, 1, 2, 3, 4, 9):
        agree(matched, n)


@relay
def inner(x: Int) -> Int:
    total = 0
    for i in range(x):
        total += i
    return total


@relay
def outer(n: Int) -> Int:
    total = 0
    for i in range(n):
        total += inner(i) * inner(i + 1)
    return total


def test_functions_that_loop_call_each_other() -> None:
    agree(outer, 10)


def test_integers_in_tensors_and_bools_are_taken() -> None:
    with options(lowering="c"), counted() as ran:
        assert collatz(torch.tensor(27)) == 111
    assert ran == ["relay_collatz"]


def test_gradients_of_loops_in_c_are_those_of_torch() -> None:
    @relay
    def power(x: Float, n: Int) -> Float:
        y = x
        for _ in range(n):
            y = y * x
        return y

    x = torch.tensor(2.0, requires_grad=True)
    with options(lowering="c"):
        power(x, 3).backward()
        assert x.grad is not None
        assert x.grad.item() == 32.0


def test_the_text_and_why_there_is_none_are_shown() -> None:
    assert "for (;;) {" in collatz.show("c")
    assert "// test_loops.py:" in collatz.show("c")
    with options(lowering="c"):
        assert "functions that C runs whole\n  collatz" in collatz.explain()

    @relay
    def printing(n: Int) -> Int:
        for i in range(n):
            print(i)  # noqa: T201
        return n

    with options(lowering="c"):
        assert "functions that loop, and run on the host\n  printing: it " in printing.explain()
    assert "for (;;)" not in printing.show("c")
