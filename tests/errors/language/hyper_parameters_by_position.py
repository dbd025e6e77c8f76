"""A layer gets its sizes by position, where torch's function takes the weight."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 10)]:
    hidden = relay.relu(relay.conv2d(x, 20, 5))
    return relay.linear(hidden.flatten(1), 10)
