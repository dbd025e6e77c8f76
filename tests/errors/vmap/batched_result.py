"""A result that differs between elements where one for all is asked for."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def double(x: Float) -> Float:
    return x + x


@relay
def doubles(xs: Tensor[Float, (N,)]) -> Float:
    return relay.vmap(double, out_axes=None)(xs)
