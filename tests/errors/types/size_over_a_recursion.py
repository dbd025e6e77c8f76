"""A function whose result has no annotation calls itself at the sizes that it was called with."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def halves(x: Tensor[Float, (N,)], times: Int):
    if times == 0:
        return x
    return halves(x[x > 0.5], times - 1)
