"""Two sizes that do not broadcast."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def shifted(x: Tensor[Float, (N, 3)], by: Tensor[Float, (4,)]):
    return x + by
