"""Only the dimension that is joined may differ."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def joined(x: Tensor[Float, (N, 3)], y: Tensor[Float, (N, 4)]):
    return relay.cat((x, y), dim=0)
