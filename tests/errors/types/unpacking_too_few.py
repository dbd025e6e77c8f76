"""A tuple of three is unpacked into two names."""

from pyrelay import Float, relay


@relay
def f(x: Float) -> Float:
    a, b = (x, x, 1.0)
    return a * b
