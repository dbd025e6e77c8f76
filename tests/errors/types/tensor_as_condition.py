"""A whole tensor is no condition."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def positive(x: Tensor[Float, (N,)]) -> Float:
    if x > 0.0:
        return 1.0
    return 0.0
