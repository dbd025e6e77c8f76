"""A whole tensor on one way, one number on the other."""

from pyrelay import Bool, Dim, Float, Tensor, relay

N = Dim("N")


@relay
def summed(x: Tensor[Float, (N, 8)], whole: Bool):
    return x if whole else x.sum()
