"""A script passes functions to a function that compares values of any type."""

from typing import TypeVar

from pyrelay import Float, relay

T = TypeVar("T")


@relay
def same(a: T, b: T) -> bool:
    return relay.equal(a, b)


@relay
def square(x: Float) -> Float:
    return x * x


def main() -> None:
    """Compare two functions."""
    same(square, square)
