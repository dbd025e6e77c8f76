"""A tensor of unknown first size is unpacked."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def add(x: Tensor[Float, (N,)]) -> Float:
    a, b = x
    return a + b
