"""The argument's shape is not the model's."""

import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10)


@relay
def loss(x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(net(x), y)


def main() -> None:
    """Pass images instead of vectors."""
    model = relay.create_model(net)
    model(torch.zeros(2, 28, 28))
