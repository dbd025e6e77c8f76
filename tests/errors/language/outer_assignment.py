"""A nested function assigns a name of the one around it."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def count(x: Tensor[Float, (N,)]) -> Float:
    total = 0.0

    def add(value):
        nonlocal total
        total = total + value

    for value in x:
        add(value)
    return total
