"""A device with a name that torch does not know."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


def main() -> None:
    """Call a GPU by its kind."""
    relay.create_model(net, seed=0, device="gpu")
