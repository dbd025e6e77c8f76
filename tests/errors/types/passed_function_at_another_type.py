"""A function that is passed is called with a string."""

from pyrelay import Float, Fn, relay


@relay
def scaled(f: Fn[[Float, Float], Float], x: Float) -> Float:
    return f(x, "two")
