"""Parameters are annotated; nothing else has to be."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scale(x: Tensor[Float, (N,)], factor):
    return x * factor
