"""A model that loops until a value is reached, as a graph of torch."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def settled(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    h = relay.linear(x, out_features=4)
    while h.sum() < 10.0:
        h = h + 1.0
    return h


def main() -> None:
    """Export it."""
    relay.export_model(relay.create_model(settled)).to_torch(torch.ones(2, 4))
