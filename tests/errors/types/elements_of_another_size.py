"""The elements of a list do not fit the function that takes them."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scored(x: Tensor[Float, (4,)]) -> Float:
    return x.sum()


@relay
def scores(xs: list[Tensor[Float, (3,)]]) -> list[Float]:
    return [scored(x) for x in xs]
