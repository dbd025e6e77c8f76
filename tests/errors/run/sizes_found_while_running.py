"""Two sizes that only the running program knows."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def add(x: Tensor[Float, (N,)]) -> Float:
    low, high = x[x < 0.5], x[x > 0.25]
    return (low + high).sum()


def main() -> None:
    add(torch.tensor([0.1, 0.3, 0.9, 0.8]))
