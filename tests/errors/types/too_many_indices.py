"""A vector is indexed twice."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def corner(x: Tensor[Float, (N,)]) -> Float:
    return x[0, 0]
