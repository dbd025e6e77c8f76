import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def last(x: Tensor[Float, (N, ..., 3)]) -> Float:
    return relay.sum(x)


def main() -> None:
    last(torch.ones(3))
