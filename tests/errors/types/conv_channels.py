"""The weight expects three channels, the image has one."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def edges(x: Tensor[Float, (N, 1, 28, 28)], w: Tensor[Float, (8, 3, 5, 5)]):
    return relay.conv2d(x, w)
