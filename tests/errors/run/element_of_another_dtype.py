"""A generator gives arrays of float64."""

from collections.abc import Iterable

import numpy as np

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    found = 0.0
    for x in data:
        found += x.sum()
    return found


def main() -> None:
    total(np.ones(n) for n in range(3))
