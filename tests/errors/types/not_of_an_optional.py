"""Whether an optional is absent is asked with `not`; what follows is not reported."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def value(x: Tensor[Float, (N,)] | None) -> Float:
    if not x:
        return 1.0
    return x.sum()
