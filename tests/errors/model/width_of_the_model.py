"""A batch is wider than what the model was made for."""

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

K, N = Dim("K"), Dim("N")


@relay_model
def net(x: Tensor[Float, (N, K)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=1)


def main() -> None:
    """Run it."""
    relay.create_model(net, dims={K: 3})(torch.ones(2, 4))
