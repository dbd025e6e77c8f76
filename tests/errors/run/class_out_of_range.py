"""A class index that has no place in a one-hot row."""

import torch

from pyrelay import Dim, Int, Tensor, relay

N = Dim("N")


@relay
def rows(y: Tensor[Int, (N,)]) -> Tensor[Int, (N, 3)]:
    return relay.one_hot(y, 3)


def main() -> None:
    """Give class 3 of three."""
    rows(torch.tensor([0, 3]))
