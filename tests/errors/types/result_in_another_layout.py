"""A convolution of images in NHWC, where NCHW is declared."""

from pyrelay import NHWC, Dim, Float, Tensor, relay

N = Dim("N")


@relay
def features(
    x: Tensor[Float, (N, 3, 8, 8), NHWC], w: Tensor[Float, (4, 3, 3, 3)]
) -> Tensor[Float, (N, 4, 6, 6)]:
    return relay.conv2d(x, w)
