"""Random numbers without a key."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def disturb(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x + torch.randn_like(x) + relay.rand(3)
