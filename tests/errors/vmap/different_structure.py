"""Elements with lists of different lengths where they need to have one."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def listed(x: Float) -> Float:
    found = [x]
    if x > 0.0:
        found = [x, x]
    return relay.stack(found).sum()


@relay
def every(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(listed)(xs)


def main() -> None:
    every(torch.tensor([1.0, -1.0]))
