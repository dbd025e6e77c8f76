"""A function over functions that is not there yet."""

from pyrelay import Float, Tensor, relay


@relay
def length(x: Tensor[Float, (3,)]) -> Float:
    return relay.sqrt((x * x).sum())


@relay
def slope(x: Tensor[Float, (3,)], v: Tensor[Float, (3,)]) -> Float:
    return relay.linearize(length)(x)[1](v)
