"""The two ways give one name different types."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def pick(x: Tensor[Float, (N,)], first: bool):
    if first:
        y = x[0]
    else:
        y = x
    return y
