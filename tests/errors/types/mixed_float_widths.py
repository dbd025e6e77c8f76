"""float32 and float64 do not mix silently."""

from pyrelay import Dim, Tensor, float32, float64, relay

N = Dim("N")


@relay
def scaled(x: Tensor[float32, (N,)], y: Tensor[float64, (N,)]):
    return x * y
