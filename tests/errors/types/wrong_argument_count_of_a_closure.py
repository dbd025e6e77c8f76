"""A function value gets too few arguments."""

from pyrelay import Float, Fn, relay


@relay
def use(f: Fn[[Float, Float], Float], x: Float) -> Float:
    return f(x)
