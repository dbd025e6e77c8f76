"""`relay.jvp` gets the direction before the call."""

from typing import Any

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def square(x: Tensor[Float, (N,)]) -> Float:
    return (x * x).sum()


def main() -> None:
    """Run it."""
    jvp: Any = relay.jvp
    jvp(square, (torch.ones(3),))
