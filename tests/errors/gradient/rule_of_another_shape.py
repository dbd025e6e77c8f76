"""The backward rule returns a cotangent of another shape than the parameter."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def fwd(x: Tensor[Float, (N, 3)]) -> tuple[Float, Tensor[Float, (N, 3)]]:
    return x.sum(), x


@relay
def bwd(saved: Tensor[Float, (N, 3)], g: Float) -> Tensor[Float, (3,)]:
    return g * saved.sum(0)


@relay.custom_vjp(fwd, bwd)
@relay
def total(x: Tensor[Float, (N, 3)]) -> Float:
    return x.sum()
