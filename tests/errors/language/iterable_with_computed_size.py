"""A size that only the elements could tell, and only by computing it."""

from collections.abc import Iterable

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[Tensor[Float, (2 * N,)]]) -> Float:
    found = 0.0
    for x in data:
        found += x.sum()
    return found
