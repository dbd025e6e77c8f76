"""`linear` takes its weight as torch does: (out, in)."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scores(x: Tensor[Float, (N, 784)], w: Tensor[Float, (784, 10)]):
    return relay.linear(x, w)
