"""A gradient is taken of a batch, of a function whose derivative has a rule."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def clipped_fwd(x: Float) -> tuple[Float, Float]:
    return relay.clamp(x, min=0.0, max=1.0), x


@relay
def clipped_bwd(x: Float, g: Float) -> Float:
    return g * x


@relay.custom_vjp(clipped_fwd, clipped_bwd)
@relay
def clipped(x: Float) -> Float:
    return relay.clamp(x, min=0.0, max=1.0)


@relay
def total(xs: Tensor[Float, (N,)]) -> Float:
    return relay.vmap(clipped)(xs).sum()


@relay
def slopes(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.grad(total)(xs)
