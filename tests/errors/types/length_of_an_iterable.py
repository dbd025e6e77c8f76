"""An iterable has no length and no items."""

from collections.abc import Iterable

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    return data[0].sum() / len(data)
