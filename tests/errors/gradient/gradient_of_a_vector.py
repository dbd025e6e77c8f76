"""The gradient is that of a number."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def squares(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x * x


@relay
def use(x: Tensor[Float, (N,)]):
    return relay.grad(squares)(x)
