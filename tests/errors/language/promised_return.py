"""A function is annotated to return a value, and returns none."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def center(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    y = x - x.mean()
