"""Operands of the wrong element types."""

from pyrelay import Dim, Float, Int, Tensor, float64, relay

N = Dim("N")


@relay
def mixed(x: Tensor[Float, (N,)], y: Tensor[float64, (N,)]) -> Tensor[float64, (N,)]:
    z = relay.cast(x, relay.float64)*y  # both
    return z + (relay.cast(x + x, relay.float64)) + relay.maximum(
        y,
        other=relay.cast(x, relay.float64),
    )


@relay
def halved(x: Tensor[float64, (N,)]) -> Tensor[float64, (N,)]:
    return x / 2


@relay
def called(x: Tensor[Float, (N,)]) -> Tensor[float64, (N,)]:
    return halved(relay.cast(x, relay.float64))


@relay
def waves(k: Tensor[Int, (N,)]) -> Tensor[Float, (N,)]:
    return relay.sin(k) + relay.softmax(k + 1, dim=0)


@relay
def loss(x: Tensor[Float, (N, 10)], y: Tensor[Float, (N,)]) -> Float:
    return relay.softmax_cross_entropy(x, relay.cast(y, relay.int64))
