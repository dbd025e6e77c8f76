"""A call site of a model is pruned like a layer."""

from torch.nn.utils import prune

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


def main() -> None:
    """Make the mistake."""
    model = relay.create_model(net)
    prune.l1_unstructured(model.linear_1, "weight", 0.5)
