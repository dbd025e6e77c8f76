"""Arguments and results that torch's functions have, and operators do not."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def mixed(x: Tensor[Float, (N, 3)], y: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
    z = relay.add(x, y, alpha=2)
    z = relay.divide(z, y, rounding_mode="floor")
    z = relay.relu(z, inplace=True)
    return z[:, 0]
