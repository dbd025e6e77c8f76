"""A static argument of a model by a name that it does not have."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

K, N = Dim("K"), Dim("N")


@relay_model
def net(x: Tensor[Float, (N, K)], *, hidden: int = 4) -> Tensor[Float, (N, 1)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=1)


def main() -> None:
    """Run it."""
    relay.create_model(net, dims={K: 3}, hiden=8)
