"""The caller's tensor never changes."""

from pyrelay import Float, Tensor, relay


@relay
def zero_first(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    y = x
    y[0] = 0.0
    return x + y
