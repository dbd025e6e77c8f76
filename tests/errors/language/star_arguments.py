"""A function takes a fixed number of arguments."""

from pyrelay import Float, relay


@relay
def total(*xs: Float) -> Float:
    return xs[0]
