"""A vector is passed for a matrix."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def trace(x: Tensor[Float, (N, N)]) -> Float:
    return relay.diagonal(x).sum()


@relay
def use(v: Tensor[Float, (5,)]) -> Float:
    return trace(v)
