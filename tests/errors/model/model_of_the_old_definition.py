"""The definition of a model is run again, as in a notebook, after the model was made."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return net(x).sum()


def main() -> None:
    """Define the model anew, and use the old one."""
    global net
    model = relay.create_model(net)
    net = relay_model(net.__relay__.function)
    relay.grad(model, loss, (torch.zeros(2, 3),))
