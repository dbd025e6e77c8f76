"""An axis beyond the dims of the argument."""

from pyrelay import Dim, Float, Tensor, relay

N, M = Dim("N"), Dim("M")


@relay
def length(x: Tensor[Float, (M,)]) -> Float:
    return relay.sqrt((x * x).sum())


@relay
def lengths(xs: Tensor[Float, (N, M)]) -> Tensor[Float, (N,)]:
    return relay.vmap(length, in_axes=2)(xs)
