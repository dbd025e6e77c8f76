"""An iterable inside of a tuple."""

from collections.abc import Iterable

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: tuple[Float, Iterable[Tensor[Float, (N,)]]]) -> Float:
    return data[0]
