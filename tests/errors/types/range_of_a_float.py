"""A loop counts with integers."""

from pyrelay import Float, relay


@relay
def steps(length: Float, x: Float) -> Float:
    for _ in range(length):
        x = x * 0.5
    return x
