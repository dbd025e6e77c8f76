"""A call with one argument too many."""

from pyrelay import Float, relay


@relay
def double(x: Float) -> Float:
    return x * 2.0


@relay
def use(x: Float) -> Float:
    return double(x, x)
