"""A torch optimiser passed for a parameter."""

import torch

from pyrelay import Dim, Float, Model, Optimizer, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)



@relay
def train(model: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


def main() -> None:
    """Pass it."""
    model = relay.create_model(net)
    train(model, torch.optim.Adam(model.parameters()), torch.zeros(2, 3))
