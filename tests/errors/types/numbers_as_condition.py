"""A vector is no condition, though a number is."""

from pyrelay import Int, Tensor, relay


@relay
def nonzero(n: Tensor[Int, (3,)]) -> Int:
    if n:
        return 1
    return 0
