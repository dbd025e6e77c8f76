"""A matrix is passed for a vector."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass a matrix."""
    total(torch.ones(3, 3))
