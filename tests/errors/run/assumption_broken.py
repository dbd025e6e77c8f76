"""An equation between sizes that only the arguments decide."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N, M = Dim("N"), Dim("M")


@relay
def joined(x: Tensor[Float, (N,)], y: Tensor[Float, (M,)]):
    return x + y


def main() -> None:
    """Pass sizes that do not broadcast."""
    joined(torch.ones(3), torch.ones(4))
