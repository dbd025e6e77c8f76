"""A loop over a number that is found to be one only when types are known."""

from pyrelay import Float, Int, relay


@relay
def steps(n: Int, x: Float) -> Float:
    count = 3 * n
    for i in count:
        x = x + i
    return x
