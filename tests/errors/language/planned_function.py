"""A function over functions that is not there yet."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def length(x: Tensor[Float, (3,)]) -> Float:
    return relay.sqrt((x * x).sum())


@relay
def lengths(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
    return relay.vmap(length)(x)
