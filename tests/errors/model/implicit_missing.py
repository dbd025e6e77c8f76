"""A call of some model that needs an implicit value."""

import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")
temperature = relay.implicit("temperature", Float)


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1) / temperature


@relay
def run(model: Model, x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(model(x))


def main() -> None:
    run(relay.create_model(net), torch.ones(2, 3))
