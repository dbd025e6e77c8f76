"""Control flow means what it means in Python: each program gives the same numbers either way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from pyrelay import relay


def early_return(n: int, x: float) -> float:
    if n == 0:
        return x
    if n == 1:
        y = x + 1.0
    elif n == 2:
        return x * 10.0
    else:
        y = x - 1.0
        if n == 3:
            return y * 100.0
    return y * 2.0


def conditions(n: int, x: float) -> float:
    a = 1.0 if n > 2 and x > 0.0 else 2.0
    b = 3.0 if n < 1 or x > 100.0 else 4.0
    c = 5.0 if not 0 < n < 5 else 6.0
    d = 7.0 if 1 <= n <= 3 < 4 != 5 else 8.0
    return a + 10.0 * b + 100.0 * c + 1000.0 * d


def ranges(n: int, x: float) -> float:
    total = x
    for i in range(n):
        total = total * 2.0 + i
    for i in range(2, n):
        total = total + i * 3.0
    for i in range(n, -1, -2):
        total = total * 1.5 + i
    for i in range(1, 3 * n, n):
        total = total + i
    for i in reversed(range(1, n)):
        total = total * 0.5 + i
    for i, (j, k) in enumerate(zip(range(5), range(n)), 2):
        total = total + i * j - k
    return total


def breaking(n: int, x: float) -> float:
    total = x
    for i in range(10):
        if i == 2:
            continue
        if i == n + 3:
            break
        for j in range(i):
            if j == 3:
                break
            total = total + j
        total = total + 1.0
    return total


def returning_from_loops(n: int, x: float) -> float:
    total = x
    for i in range(6):
        for j in range(6):
            if i * j == n:
                return total + 1000.0
            total = total + 1.0
            if j == i:
                break
        if total > 50.0:
            break
    total = total * 2.0
    while total < 1000.0:
        total = total * 3.0
        if n == 4:
            return -total
    return total


def endless(n: int, x: float) -> float:
    steps = 0
    while True:
        steps += 1
        if steps > n:
            found = x * steps
            break
        if steps == 3:
            found = -1.0
            break
    return found + steps


def endless_return(n: int, x: float) -> float:
    i = 0
    while True:
        i += 1
        if i * i > n:
            return x + i


def swapping(n: int, x: float) -> float:
    a, b = x, 1.0
    for _ in range(n):
        a, b = b, a + b
    c = d = a
    d += b
    (e, f), g = (c, d), n
    return e + 10.0 * f + g


def joins(n: int, x: float) -> float:
    y = 0.0
    z = 1.0
    if n > 1:
        y = x
        if n > 3:
            z = 2.0
        else:
            w = 5.0
            z = w + y
    elif n == 1:
        y, z = z, y
    return y + 10.0 * z


def closures(n: int, x: float) -> float:
    scale = x * 2.0

    def times(v, by=3.0):
        return v * by + scale

    def total(k):
        if k <= 0:
            return 0.0
        return times(x) + total(k - 1)

    apply = lambda f, v: f(f(v))  # noqa: E731
    return total(n) + apply(lambda v: v + n, times(by=2.0, v=x))


def mutual(n: int, x: float) -> float:
    def even(k):
        if k == 0:
            return x
        return odd(k - 1)

    def odd(k):
        if k == 0:
            return -x
        return even(k - 1)

    return even(n)


def builtins_of_python(n: int, x: float) -> float:
    a = min(n, 3) + max(1, n, 2) + abs(n - 2)
    b = n // 2 + n % 3 + (-n) // 2 + (-n) % 3
    c = math.sqrt(x) + math.floor(x) + math.ceil(x) + round(x)
    d = float(n) + int(x) + math.log(x, 2.0) + math.pi
    return a + b * 10.0 + c + d + n**2 + (1.0 if bool(n) else 0.0)


def unused_after_a_branch(n: int, x: float) -> float:
    if n > 2:
        t = x
        y = t * 2.0
    else:
        t = (x, n)
        y = t[0] + t[1]
    t = y + 1.0
    return t  # noqa: RET504


def rebinding_a_parameter(n: int, x: float) -> float:
    for n in range(n):  # noqa: B020
        x = x + n
        n = n + 100
    return x


PROGRAMS = [
    early_return,
    conditions,
    ranges,
    breaking,
    returning_from_loops,
    endless,
    endless_return,
    swapping,
    joins,
    closures,
    mutual,
    builtins_of_python,
    unused_after_a_branch,
    rebinding_a_parameter,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_gives_what_python_gives(program: Callable[..., Any]) -> None:
    compiled = relay(program)
    for n in range(1, 7):
        for x in (0.75, 2.5):
            expected = program(n, x)
            assert compiled(n, x) == pytest.approx(expected, rel=1e-5)
            assert compiled.interpret(n, x) == pytest.approx(expected, rel=1e-5)
