"""A shape is made of whole numbers and sizes."""

from pyrelay import Float, Tensor, relay


@relay
def total(x: Tensor[Float, (2.5, 3)]) -> Float:
    return x.sum()
