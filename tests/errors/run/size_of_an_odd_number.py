"""Pairs are made of what the program finds, which is an odd number of elements."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def pairs(x: Tensor[Float, (N,)]):
    found = x[x > 0.0]
    return relay.reshape(found, (-1, 2))


def main() -> None:
    pairs(torch.ones(3))
