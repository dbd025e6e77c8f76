"""A size that the annotation writes as a number is another one."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N, 8)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass 9 columns."""
    total(torch.ones(2, 9))
