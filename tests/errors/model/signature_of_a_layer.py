"""The signature of an operator names each parameter once, and those of a model behind a star."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 1, 8, 8)]):
    return relay.conv2d(x, channels=3)
