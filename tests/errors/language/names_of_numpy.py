"""Parameters by the names that numpy gives them."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def mean(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
    return relay.sum(x, axis=1, keepdims=True) / x.shape[1]
