"""A loop may run not even once."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def last(x: Tensor[Float, (N,)]) -> Float:
    for value in x:
        found = value * 2
    return found
