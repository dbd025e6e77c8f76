"""Neither of two factors is known."""

from pyrelay import Dim, Float, Tensor, relay

N, K = Dim("N"), Dim("K")


@relay
def matrix(x: Tensor[Float, (N * K,)]):
    return relay.reshape(x, (N, K))
