"""Open sizes are given without names."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]):
    return relay.linear(x, out_features=2)


def main() -> None:
    """Create."""
    relay.create_model(net, dims=(3,))
