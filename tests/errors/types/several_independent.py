"""Two mistakes that have nothing to do with each other."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def both(x: Tensor[Float, (N, 3)], y: Tensor[Float, (4,)]):
    a = x + y
    b = x @ relay.reshape(y, (2, 2))
    return a.sum() + b.sum()
