"""A call from a script without an argument."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def dot(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Float:
    return (x * y).sum()


def main() -> None:
    """Pass one of two."""
    dot(torch.ones(3))
