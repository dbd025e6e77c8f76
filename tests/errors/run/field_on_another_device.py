"""A record whose fields are on two devices."""

from dataclasses import dataclass

import torch

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Pair:
    first: Tensor[Float, (3,)]
    second: Tensor[Float, (3,)]


@relay
def dot(p: Pair) -> Float:
    return relay.sum(p.first * p.second)


def main() -> None:
    """Move one field only; torch's meta device stands for a GPU."""
    dot(Pair(torch.ones(3), torch.ones(3, device="meta")))
