"""A data set gives three things, where two are expected."""

from collections.abc import Iterable

import torch

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def total(data: Iterable[tuple[Tensor[Float, (N,)], Int]]) -> Float:
    found = 0.0
    for x, y in data:
        found += x.sum() * y
    return found


def main() -> None:
    total([(torch.ones(2), 1, "a cat")])
