"""An assertion says which values it found; the text is made only when it fails."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def step(x: Tensor[Float, (N,)], rate: float) -> Float:
    assert rate < 1, f"a rate of {rate:.2f} is too much for {x.shape[0]} numbers, mean {x.mean():g}"
    return x.sum() * rate


def main() -> None:
    step(torch.ones(3), 0.5)
    step(torch.ones(4), 2.5)
