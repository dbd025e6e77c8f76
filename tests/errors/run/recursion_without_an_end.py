"""A recursion whose last case is never met."""

import pyrelay
from pyrelay import Int, relay


@relay
def factorial(n: Int) -> Int:
    if n == 0:
        return 1
    return n * factorial(n - 2)


def main() -> None:
    """Start at an odd number."""
    with pyrelay.options(max_depth=1000):
        factorial(7)
