"""Devices and torch's own dtypes have no place in compiled code."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def move(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    y = x.cuda() + relay.zeros(3, device="cuda")
    z = y.to("cuda") + x.to(torch.float64)
    return z.type(torch.int32)
