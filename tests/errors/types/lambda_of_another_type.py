"""A lambda whose result has another type than the function that calls it takes."""

from pyrelay import Float, Fn, relay


@relay
def applied(f: Fn[[Float], Float], x: Float) -> Float:
    return f(x)


@relay
def both(x: Float) -> Float:
    return applied(lambda v: (v, v), x)
