"""An exported model is differentiated."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]):
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)


def main() -> None:
    """Differentiate."""
    model = relay.export_model(relay.create_model(net))
    relay.value_and_grad(model, loss, (torch.ones(2, 3),))
