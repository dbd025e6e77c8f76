"""A matrix has no third dimension."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N, 3)]):
    return x.sum(dim=2)
