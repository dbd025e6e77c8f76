"""A script gives a parameter another shape than the model was made with."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


def main() -> None:
    """Run it."""
    model = relay.create_model(net)
    model.linear_1.weight = torch.nn.Parameter(torch.ones(5, 5))
    model(torch.ones(2, 3))
