"""A tensor is indexed by a name, and a tuple by a number that is not written out."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def column(x: Tensor[Float, (N,)], pair: tuple[Float, Float], i: int) -> Float:
    return x["first"] + pair[i]
