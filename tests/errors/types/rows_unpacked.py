"""The rows of a tensor are tensors, not tuples."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N, 3)]) -> Float:
    found = 0.0
    for a, b, c in x:
        found += a * b * c
    return found
