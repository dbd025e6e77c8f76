"""An argument that the operator does not have."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def pooled(x: Tensor[Float, (N, 1, 28, 28)]):
    return relay.max_pool2d(x, kernelsize=2)
