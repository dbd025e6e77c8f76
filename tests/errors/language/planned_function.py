"""A function over functions that is not there yet."""

from pyrelay import Float, Tensor, relay


@relay
def length(x: Tensor[Float, (3,)]) -> Float:
    return relay.sqrt((x * x).sum())


@relay
def curvature(x: Tensor[Float, (3,)]) -> Tensor[Float, (3, 3)]:
    return relay.hessian(length)(x)
