"""The weight's shape depends on a size that nothing fixes."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N, K = Dim("N"), Dim("K")


@relay_model
def net(x: Tensor[Float, (N, K)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10)


def main() -> None:
    """Create it without saying how wide its input is."""
    relay.create_model(net)
