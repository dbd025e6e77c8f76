"""A size of a layer must be known before the program runs."""

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 784)], width: Int):
    return relay.linear(x, out_features=width)
