"""Functions as users write them that recurse or loop as often as their arguments say.

All apply one step, `x + sin(x) / 10000`, again and again, so `iterated` knows what they and their
derivatives give, in plain floats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pyrelay import Dim, Int, Tensor, float64, relay

N = Dim("N")


@relay
def recursion(x: float64, n: Int) -> float64:
    """Recurse with work left to do after the call."""
    if n == 0:
        return x
    inner = recursion(x, n - 1)
    return inner + relay.sin(inner) * 1e-4


@relay
def even(x: float64, n: Int) -> float64:
    """Recurse through `odd`."""
    if n == 0:
        return x
    inner = odd(x, n - 1)
    return inner - relay.sin(-inner) * 1e-4


@relay
def odd(x: float64, n: Int) -> float64:
    """Recurse through `even`, in tail position."""
    return even(x + relay.sin(x) * 1e-4, n - 1)


@relay
def loop(x: float64, n: Int) -> float64:
    """Loop with `while`."""
    i = 0
    while i < n:
        x = x + relay.sin(x) * 1e-4
        i += 1
    return x


@relay
def recursion_in_loop(x: float64, n: Int, depth: Int) -> float64:
    """Recurse to a depth, so many times."""
    for _ in range(n):
        x = recursion(x, depth)
    return x


@relay
def loop_in_recursion(x: float64, n: Int, steps: Int) -> float64:
    """Loop for some steps after each recursive call."""
    if n == 0:
        return x
    inner = loop_in_recursion(x, n - 1, steps)
    for _ in range(steps):
        inner = inner + relay.sin(inner) * 1e-4
    return inner


@relay
def local_recursion(x: float64, n: Int) -> float64:
    """Recurse through a local function that uses what is around it."""
    small = 1e-4

    def go(k: Int):
        if k == n:
            return x
        inner = go(k + 1)
        return inner + relay.sin(inner) * small

    return go(0)


@relay
def vector_loop(x: Tensor[float64, (N,)], n: Int) -> float64:
    """Loop over a vector; return the sum."""
    for _ in range(n):
        x = x + relay.sin(x) * 1e-4
    return x.sum()


@relay
def slope(x: float64, n: Int) -> float64:
    """Return the gradient of the recursion, as part of a program."""
    return relay.grad(recursion, wrt="x")(x, n)


@relay
def loop_slope(x: float64, n: Int) -> float64:
    """Return the gradient of the loop, as part of a program."""
    return relay.grad(loop, wrt="x")(x, n)


class Jet(NamedTuple):
    """A value and its first two derivatives."""

    value: float
    first: float
    second: float


def iterated(x: float, steps: int) -> Jet:
    """Return the step applied so many times, by the chain rule."""
    first, second = 1.0, 0.0
    for _ in range(steps):
        slope_here = 1 + math.cos(x) * 1e-4
        first, second = slope_here * first, slope_here * second - math.sin(x) * 1e-4 * first**2
        x += math.sin(x) * 1e-4
    return Jet(x, first, second)
