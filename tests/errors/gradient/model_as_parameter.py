"""A model is a cell: the gradient in its parameters is asked for by naming it first."""

import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(model: Model[net], x: Tensor[Float, (N, 2)]) -> Float:
    return model(x).sum()


def main() -> None:
    """Call its gradient."""
    relay.grad(loss, wrt="model")(relay.create_model(net), torch.ones(3, 2))
