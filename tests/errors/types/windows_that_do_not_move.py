"""Numbers of windows that no convolution and no pool has."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def convolved(
    x: Tensor[Float, (N, 3, 8, 8)], w: Tensor[Float, (4, 3, 3, 3)]
) -> Tensor[Float, (N, 4, 6, 6)]:
    y = relay.conv2d(x, w, stride=0)
    y = relay.conv2d(x, w, padding=(0, -1))
    y = relay.avg_pool2d(y, 2, divisor_override=0)
    return relay.max_pool2d(y, (2, 0))
