"""A sum that starts as an integer."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)], start: Int):
    found = start
    for value in x:
        found = found + value
    return found
