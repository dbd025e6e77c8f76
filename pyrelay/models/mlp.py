"""The perceptron with layers in between: linear maps with a bend after all but the last."""

from __future__ import annotations

from ..annotations import Dim, Float, Tensor
from ..decorators import relay, relay_model

N, D, K = Dim("N"), Dim("D"), Dim("K")


@relay_model
def mlp(
    x: Tensor[Float, (N, D)], *, hidden: int = 512, layers: int = 2, classes: int = 10
) -> Tensor[Float, (N, K)]:
    """Scores for `classes`, through `layers` layers of `hidden` features with `relu`."""
    for _ in relay.layers(layers):
        x = relay.relu(relay.linear(x, out_features=hidden))
    return relay.linear(x, out_features=classes, name="output")
