"""The size of a slice is a quotient of two sizes, one of which is 0."""

from typing import Annotated

import torch

from pyrelay import Dim, Float, Tensor, relay

N, K = Dim("N"), Dim("K")


@relay
def first(x: Tensor[Float, (N,)], k: Annotated[int, K]):
    return x[: x.shape[0] // k]


def main() -> None:
    first(torch.ones(4), 0)
