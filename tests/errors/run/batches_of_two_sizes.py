"""Two batches of a `vmap` have different sizes."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scaled(x: Float, y: Tensor[Float, (N,)]) -> Float:
    return x * y.sum()


def main() -> None:
    """Run it."""
    relay.vmap(relay.grad(scaled))(torch.ones(3), torch.ones(4, 2))
