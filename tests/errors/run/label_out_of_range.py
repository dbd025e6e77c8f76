"""A class index that is no class."""

import torch

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def loss(scores: Tensor[Float, (N, 10)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(scores, y)


def main() -> None:
    """Label a digit as 10."""
    loss(torch.zeros(1, 10), torch.tensor([10]))
