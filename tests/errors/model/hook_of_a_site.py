"""A call site of a model is hooked like a layer."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


def main() -> None:
    """Make the mistake."""
    model = relay.create_model(net)
    model.linear_1.register_forward_hook(print)
