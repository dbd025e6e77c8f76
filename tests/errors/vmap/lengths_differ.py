"""Arguments with batches of different sizes."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def product(x: Float, y: Float) -> Float:
    return x * y


@relay
def products(xs: Tensor[Float, (4,)], ys: Tensor[Float, (3,)]) -> Tensor[Float, (4,)]:
    return relay.vmap(product)(xs, ys)
