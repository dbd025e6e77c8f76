"""`and`, `or` and chained comparisons of whole tensors."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def inside(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Float:
    both = (x > 0) and (y > 0)
    if 0 < x < 1:
        return x.sum()
    return relay.where(both, x, y).sum()
