"""A nested function adds to a name of the function around it."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def count(x: Tensor[Float, (N,)]) -> Float:
    total = 0.0

    def add(value):
        total += value

    for value in x:
        add(value)
    return total
