"""A call that determines no size of the function."""

from pyrelay import Dim, Float, Tensor, relay

N, M = Dim("N"), Dim("M")


@relay
def total(x: Tensor[Float, (N * N,)]):
    return x.sum()


@relay
def of_any(x: Tensor[Float, (M,)]):
    return total(x)
