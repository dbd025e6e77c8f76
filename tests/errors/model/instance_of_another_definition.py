"""A model of one definition is passed for another."""

import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10)


@relay
def loss(x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(net(x), y)


@relay_model
def other(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10)


def main() -> None:
    """Take the gradient of one model's loss in the other."""
    model = relay.create_model(other)
    relay.grad(model, loss, (torch.zeros(2, 784), torch.zeros(2, dtype=torch.int64)))
