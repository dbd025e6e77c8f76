"""A value returned from inside a loop, another type behind it."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def first_large(xs: Tensor[Float, (N,)]):
    for x in xs:
        if x > 1.0:
            return x
    return xs
