"""A sparse tensor, for which nothing is compiled."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass a sparse tensor."""
    total(torch.tensor([0.0, 1.0]).to_sparse())
