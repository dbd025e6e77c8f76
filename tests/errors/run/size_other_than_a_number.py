"""A named size is not the number that the result needs."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def three(x: Tensor[Float, (N,)]) -> Tensor[Float, (3,)]:
    return x * 2.0


def main() -> None:
    """Pass four elements."""
    three(torch.ones(4))
