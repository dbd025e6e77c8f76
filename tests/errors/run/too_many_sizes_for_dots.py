import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N, ...)]) -> Float:
    return relay.sum(x)


def main() -> None:
    total(torch.ones([1] * 20))
