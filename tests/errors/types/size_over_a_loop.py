"""A name that a loop carries has one size."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def halves(x: Tensor[Float, (N,)], times: Int) -> Float:
    for _ in range(times):
        x = x[x > 0.5]
    return x.sum()
