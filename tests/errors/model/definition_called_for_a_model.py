"""The definition is called, without arguments, to create a model."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]):
    return relay.linear(x, out_features=2)


def main() -> None:
    """Create."""
    relay.create_model(net())
