"""An integer that Python would let grow does not fit into a tensor."""

from pyrelay import Int, relay


@relay
def factorial(n: int) -> Int:
    product = 1
    for i in range(n):
        product *= i + 1
    return product


def main() -> None:
    """2 432 902 008 176 640 000 still fits."""
    factorial(20)
    factorial(21)
