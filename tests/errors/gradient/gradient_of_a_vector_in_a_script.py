"""The same from a script."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def squares(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x * x


def main() -> None:
    """Ask for the gradient of a vector."""
    relay.grad(squares)(torch.ones(3))
