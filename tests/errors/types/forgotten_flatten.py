"""Feature maps go into a linear layer that expects vectors."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def head(x: Tensor[Float, (N, 50, 4, 4)], w: Tensor[Float, (10, 800)]):
    return relay.linear(x, w)
