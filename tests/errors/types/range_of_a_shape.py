"""A shape, a tensor and a list are no numbers of rounds."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)], ys: list[Float]) -> Float:
    found = 0.0
    for i in range(x.shape):
        found += x[i]
    for i in range(x):
        found += x[i]
    for i in range(ys):
        found += ys[i]
    return found
