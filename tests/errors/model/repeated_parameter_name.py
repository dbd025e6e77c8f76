"""Two parameters of one name."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 8)]) -> Tensor[Float, (N, 8)]:
    h = relay.linear(x, out_features=8, name="layer")
    return relay.linear(h, out_features=8, name="layer")
