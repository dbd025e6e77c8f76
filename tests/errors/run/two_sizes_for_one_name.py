"""Two arguments disagree about N."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def dot(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Float:
    return (x * y).sum()


def main() -> None:
    """Pass three and four numbers."""
    dot(torch.ones(3), torch.ones(4))
