"""Elements that would give lists of different lengths."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def listed(x: Float) -> Float:
    found = [x]
    if x > 0.0:
        found = [x, x]
    return relay.stack(found).sum()


@relay
def every(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(listed)(xs)
