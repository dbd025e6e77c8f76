"""A model on one device, a batch on another."""

import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def train(model: Model[net], x: Tensor[Float, (N, 4)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


def main() -> None:
    """Forget to move the batch; torch's meta device stands for a GPU."""
    train(relay.create_model(net, seed=0), torch.ones(2, 4, device="meta"))
