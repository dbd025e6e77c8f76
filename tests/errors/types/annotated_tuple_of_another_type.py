"""A tuple has as many fields as its annotation, of which one is of another type."""

from pyrelay import Float, Int, relay


@relay
def pair(x: Float, n: Int):
    both: tuple[Float, Float] = (x, n)
    return both
