"""The forward rule takes other parameters than the function."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def fwd(x: Tensor[Float, (N,)]) -> tuple[Tensor[Float, (N,)], Tensor[Float, (N,)]]:
    return relay.tanh(x), x


@relay
def bwd(saved: Tensor[Float, (N,)], g: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return g * saved


@relay.custom_vjp(fwd, bwd)
@relay
def bent(x: Tensor[Float, (N,)], k: Int) -> Tensor[Float, (N,)]:
    return relay.tanh(x) * k
