"""A lambda whose result has another dtype than the function that calls it takes."""

from pyrelay import Float, Fn, relay


@relay
def applied(f: Fn[[Float], Float], x: Float) -> Float:
    return f(x)


@relay
def is_positive(x: Float) -> Float:
    return applied(lambda v: v > 0.0, x)
