"""A start counted back from the size that falls below zero."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def last_five(x: Tensor[Float, (N,)]):
    return x[x.shape[0] - 5 :]


def main() -> None:
    """Pass fewer elements than the slice counts back."""
    last_five(torch.ones(3))
