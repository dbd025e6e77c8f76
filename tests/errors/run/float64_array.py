"""numpy's default dtype is not Float's."""

import numpy as np

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass float64."""
    total(np.ones(3))
