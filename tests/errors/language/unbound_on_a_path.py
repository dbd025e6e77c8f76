"""A name has a value on one path only."""

from pyrelay import Float, relay


@relay
def pick(x: Float) -> Float:
    if x > 0.0:
        y = x
    return y
