"""The value of a name is not what its annotation says."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def middle(x: Tensor[Float, (N,)], scale: Float) -> Float:
    count: Int = scale
    rest: Tensor[Float, (N, 2)] = x[1:-1] * 2
    return (rest * count).sum()
