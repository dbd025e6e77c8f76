"""A format for numbers is used on a whole tensor, and one for integers on a float."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def show(x: Tensor[Float, (N,)]) -> Float:
    print(f"values {x:.3f}")
    print(f"total {x.sum():d}")
    return x.sum()
