"""One size stands for two that differ."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def trace(x: Tensor[Float, (N, N)]) -> Float:
    return relay.diagonal(x).sum()


@relay
def use(x: Tensor[Float, (3, 4)]) -> Float:
    return trace(x)
