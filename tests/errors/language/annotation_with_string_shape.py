"""A shape is made of numbers and sizes, not of text."""

from pyrelay import Float, Tensor, relay


@relay
def total(x: Tensor[Float, "n 3"]) -> Float:
    return x.sum()
