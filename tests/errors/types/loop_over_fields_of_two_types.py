"""A loop over a tuple of a number and a pair."""

from pyrelay import Float, Int, relay


@relay
def total(x: Float, parts: tuple[Float, tuple[Int, Int]]) -> Float:
    for part in parts:
        x = x + part
    return x
