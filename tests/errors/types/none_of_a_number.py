"""A parameter defaults to None, and its annotation does not say so."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scale(x: Float, factor: Float = None) -> Float:
    if factor is None:
        return x
    return x * factor
