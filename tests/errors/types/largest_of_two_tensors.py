"""Torch's `max` of two tensors."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def larger(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.max(x, y)
