"""A number is passed where a loop reads an iterable."""

from collections.abc import Iterable

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    found = 0.0
    for x in data:
        found += x.sum()
    return found


def main() -> None:
    total(3)
