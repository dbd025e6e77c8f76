"""`&` binds tighter than `>`, and has no meaning for integers."""

from pyrelay import Bool, Dim, Float, Tensor, relay

N = Dim("N")


@relay
def inside(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Tensor[Bool, (N,)]:
    return x > y & y


@relay
def low_bits(n: int) -> int:
    return n & 3
