"""A tensor is unpacked as if it were a tuple."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def add(x: Tensor[Float, (2,)]) -> Float:
    a, b = x
    return a + b
