"""A keyword-only parameter without a default."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 784)], *, hidden: int) -> Tensor[Float, (N, 10)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=10)


def main() -> None:
    """Create it without saying how wide it is."""
    relay.create_model(net)
