import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def folded(x: Tensor[Float, (N,)]) -> Float:
    if x.shape[0] > 1:
        half = x.shape[0] // 2
        return folded(x[:half] * x[half:])
    return relay.sum(x)


def main() -> None:
    folded(torch.ones(6))
