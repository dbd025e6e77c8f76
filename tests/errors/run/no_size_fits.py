"""A length that no size gives."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def halves(x: Tensor[Float, (2 * N,)]):
    return x[:N] + x[N:]


def main() -> None:
    """Pass an odd number of elements."""
    halves(torch.ones(5))
