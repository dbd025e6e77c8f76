"""Class indices are integers."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def loss(scores: Tensor[Float, (N, 10)], y: Tensor[Float, (N,)]) -> Float:
    return relay.softmax_cross_entropy(scores, y)
