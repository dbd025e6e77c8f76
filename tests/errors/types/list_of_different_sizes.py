"""The elements of a list have one type, and each of these has a size of its own."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def above(x: Tensor[Float, (N,)]) -> Float:
    found = [x[x > limit] for limit in [0.25, 0.5]]
    return found[0].sum()
