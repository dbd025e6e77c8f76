"""A model that takes a list, as a graph of torch."""

import torch

from pyrelay import Float, Tensor, relay, relay_model
from pyrelay.prelude import List


@relay_model
def reader(xs: List[Tensor[Float, (4,)]]) -> Tensor[Float, (4,)]:
    state = relay.zeros((4,))
    for x in xs:
        state = relay.tanh(relay.linear(state + x, out_features=4))
    return state


def main() -> None:
    """Export it."""
    relay.export_model(relay.create_model(reader)).to_torch([torch.ones(4)])
