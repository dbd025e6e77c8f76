"""The second matrix is the wrong way round."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scores(x: Tensor[Float, (N, 784)], w: Tensor[Float, (10, 784)]):
    return x @ w
