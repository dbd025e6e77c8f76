"""A model of another definition than the annotation names."""

import torch

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

K, N = Dim("K"), Dim("N")


@relay_model
def net(x: Tensor[Float, (N, K)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=1)


@relay_model
def other(x: Tensor[Float, (N, K)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def total(model: Model[net], x: Tensor[Float, (N, K)]) -> Float:
    return model(x).sum()


def main() -> None:
    """Run it."""
    total(relay.create_model(other, dims={K: 3}), torch.ones(2, 3))
