"""Rows of three numbers are unpacked into two names."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N, 3)]) -> Float:
    found = 0.0
    for a, b in x:
        found += a * b
    return found
