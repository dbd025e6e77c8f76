"""An optimiser goes on from what another kind of optimiser saved."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


def main() -> None:
    """Load the state of plain descent into Adam."""
    model = relay.create_model(net)
    saved = relay.optim.sgd(lr=0.1).state_dict(model)
    relay.optim.adam(lr=0.1).load_state_dict(model, saved)
