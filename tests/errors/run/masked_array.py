"""An array of numpy with a mask, which a tensor does not have."""

import numpy as np

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass an array with a masked element."""
    total(np.ma.array(np.ones(3, dtype=np.float32), mask=[0, 1, 0]))
