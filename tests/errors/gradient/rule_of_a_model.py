"""A function with a derivative of its own mentions a model, whose parameters have gradients too."""

from pyrelay import Float, Tensor, relay, relay_model


@relay_model
def net(x: Tensor[Float, (4,)]) -> Tensor[Float, (2,)]:
    return relay.linear(x, out_features=2)


@relay
def fwd(x: Tensor[Float, (4,)]) -> tuple[Float, Tensor[Float, (4,)]]:
    return x.sum(), x


@relay
def bwd(saved: Tensor[Float, (4,)], g: Float) -> Tensor[Float, (4,)]:
    return g * saved


@relay.custom_vjp(fwd, bwd)
@relay
def score(x: Tensor[Float, (4,)]) -> Float:
    return net(x).sum()
