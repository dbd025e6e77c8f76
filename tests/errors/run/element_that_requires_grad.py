"""A gradient into an iterable would be lost."""

from collections.abc import Iterable

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[Tensor[Float, (N,)]]) -> Float:
    found = 0.0
    for x in data:
        found += x.sum()
    return found


def main() -> None:
    total([torch.ones(2, requires_grad=True)])
