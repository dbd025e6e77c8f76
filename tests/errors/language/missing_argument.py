"""A call without an argument that has no default."""

from pyrelay import Float, relay


@relay
def blend(a: Float, b: Float, weight: Float) -> Float:
    return a * weight + b * (1 - weight)


@relay
def use(x: Float) -> Float:
    return blend(x, x)
