"""A power is written as in mathematics."""

from pyrelay import Float, relay


@relay
def square(x: Float) -> Float:
    return x ^ 2
