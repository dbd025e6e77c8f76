"""A model is updated by the value of the loss."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

K, N = Dim("K"), Dim("N")


@relay_model
def net(x: Tensor[Float, (N, K)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=1)


@relay
def loss(x: Tensor[Float, (N, K)]) -> Float:
    return net(x).sum()


def main() -> None:
    """Run it."""
    model = relay.create_model(net, dims={K: 3})
    relay.update_model_params(model, model.bind(loss)(torch.ones(2, 3)), lr=0.1)
