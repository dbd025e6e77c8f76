"""Indices and bounds that are no integers."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def middle(x: Tensor[Float, (N,)]) -> Float:
    n = x.shape[0]
    return x[1.5] + x[: n / 2].sum()
