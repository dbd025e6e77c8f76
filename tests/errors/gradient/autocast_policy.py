"""The policy of `autocast` is a dtype that is not narrow."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def product(x: Tensor[Float, (N, N)]) -> Tensor[Float, (N, N)]:
    return x @ x


@relay
def narrow(x: Tensor[Float, (N, N)]) -> Tensor[Float, (N, N)]:
    return relay.autocast(product, policy="float32")(x)
