"""Branches that give a float and an integer, the one a literal and the other not."""

from pyrelay import Float, Int, relay


@relay
def chosen(n: Int, x: Float) -> Float:
    first = 0.5 if n > 2 else n
    if x > first:
        second = x
    else:
        second = n
    return first + second
