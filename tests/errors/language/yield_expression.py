"""A generator."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def doubles(x: Tensor[Float, (N,)]):
    for value in x:
        yield value * 2
