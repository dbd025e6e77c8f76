"""Kernels are asked for, and the tensors are on the CPU."""

import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.config import options

N = Dim("N")


@relay
def double(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x + x


def main() -> None:
    with options(lowering="triton"):
        double(torch.ones(3))
