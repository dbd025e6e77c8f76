"""An iterable has no last element to begin with."""

from collections.abc import Iterable

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    found = 0.0
    for x in reversed(data):
        found += x.sum()
    for x, y in zip(data, data, strict=True):
        found += x.sum() * y.sum()
    return found
