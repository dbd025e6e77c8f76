"""An Int tensor is passed for a Float one."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def mean(x: Tensor[Float, (N,)]) -> Float:
    return x.mean()


@relay
def use(counts: Tensor[Int, (N,)]) -> Float:
    return mean(counts)
