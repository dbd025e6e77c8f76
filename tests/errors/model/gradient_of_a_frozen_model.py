"""A gradient is taken in a model of which all parameters are frozen."""

import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def teacher(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return teacher(x).sum()


@relay
def step(model: Model[teacher], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


def main() -> None:
    """Make the mistake."""
    model = relay.create_model(teacher)
    model.requires_grad_(False)
    step(model, torch.zeros(1, 3))
