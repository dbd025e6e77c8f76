"""Two sizes that annotations leave open must be equal, and are not."""

import torch

from pyrelay import Any, Float, Tensor, relay


@relay
def added(x: Tensor[Float, (Any,)], y: Tensor[Float, (Any, Any)]):
    return x + y[0]


def main() -> None:
    """Three columns fit three elements."""
    added(torch.ones(3), torch.ones(2, 3))
    added(torch.ones(2), torch.ones(2, 3))
