"""A list of positions as an index."""

from pyrelay import Any, Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def chosen(x: Tensor[Float, (N,)], places: list[Int]) -> Tensor[Float, (Any,)]:
    return x[places]
