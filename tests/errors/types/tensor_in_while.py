"""A loop goes on while one Bool holds."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def halve(x: Tensor[Float, (N,)]):
    while x > 1.0:
        x = x / 2.0
    return x
