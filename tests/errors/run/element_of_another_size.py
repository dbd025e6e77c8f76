"""A later element of an iterable does not have the size that a parameter fixes."""

from collections.abc import Iterable

import torch

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def score(
    data: Iterable[tuple[Tensor[Float, (N, 4)], Tensor[Int, (N,)]]], w: Tensor[Float, (4,)]
) -> Float:
    total = 0.0
    for x, y in data:
        total += (x @ w * y).sum()
    return total


def main() -> None:
    data = [(torch.ones(2, 4), torch.tensor([0, 1])), (torch.ones(3, 4), torch.tensor([0, 1]))]
    score(data, torch.ones(4))
