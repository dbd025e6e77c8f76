"""Half of a size, as a float."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def halves(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2, 2)]:
    return relay.reshape(x, (x.shape[0], x.shape[1] / 2, 2))
