"""More axes than parameters."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def double(x: Float) -> Float:
    return x + x


@relay
def doubles(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(double, in_axes=(0, None))(xs)
