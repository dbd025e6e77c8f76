"""Compiled code calls a function with a fixed tensor that requires a gradient."""

import torch

from pyrelay import Float, Tensor, relay


@relay
def affine(w: Tensor[Float, (3,)], x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return w * x + 1.0


scaled = relay.specialise(affine, w=torch.ones(3, requires_grad=True))


@relay
def total(x: Tensor[Float, (3,)]) -> Float:
    return scaled(x).sum()


def main() -> None:
    total.check()
