"""The new shape has another number of elements."""

from pyrelay import Float, Tensor, relay


@relay
def folded(x: Tensor[Float, (4, 6)]):
    return x.reshape(5, 5)
