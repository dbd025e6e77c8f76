"""A method of tensors is called on a list."""

from pyrelay import Float, relay


@relay
def average(xs: list[Float]) -> Float:
    return xs.mean()
