"""A size that is computed from another one is below 0."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def rest(x: Tensor[Float, (N,)]):
    return relay.zeros((x.shape[0] - 3,))


def main() -> None:
    """Three elements leave nothing, which is a size."""
    rest(torch.ones(3))
    rest(torch.ones(2))
