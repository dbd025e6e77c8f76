"""A model of batches gets one image."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 1, 28, 28)]) -> Tensor[Float, (N, 20, 24, 24)]:
    return relay.conv2d(x, out_channels=20, kernel_size=5)


@relay
def one(image: Tensor[Float, (1, 28, 28)]):
    return net(image)
