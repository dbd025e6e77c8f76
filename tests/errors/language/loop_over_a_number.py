"""A loop runs over elements; a number has none."""

from pyrelay import Float, relay


@relay
def over_a_literal(x: Float) -> Float:
    for i in 10:
        x = x + i
    return x
