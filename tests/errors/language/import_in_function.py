"""An import inside a function."""

from pyrelay import Float, relay


@relay
def area(r: Float) -> Float:
    import math

    return math.pi * r * r
