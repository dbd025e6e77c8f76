"""A model is converted to a dtype that its annotations do not say."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

K, N = Dim("K"), Dim("N")


@relay_model
def net(x: Tensor[Float, (N, K)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=1)


def main() -> None:
    """Run it."""
    model = relay.create_model(net, dims={K: 3}).double()
    model(torch.ones(2, 3))
