"""Pairs in a list differ in more than None."""

from pyrelay import Float, relay


@relay
def pairs(x: Float) -> Float:
    ps = [(1, x), (2, None), (3, "a")]
    return x
