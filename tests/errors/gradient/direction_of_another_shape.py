"""A direction that is not like the parameters of the model."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return net(x).sum()


def main():
    model = relay.create_model(net, seed=0)
    v = {"linear_1.weight": torch.ones(4), "linear_1.bias": torch.ones(1)}
    return relay.hvp(model, loss, (torch.ones(2, 4),), v)
