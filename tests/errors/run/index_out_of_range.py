"""An index beyond the end, known only when the program runs."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def item(x: Tensor[Float, (N,)], i: int) -> Float:
    return x[i]


def main() -> None:
    """Take the fourth of three."""
    item(torch.ones(3), 3)
