from pyrelay import Float, Tensor, relay


@relay
def total(x: Tensor[Float, (..., 3, ...)]) -> Float:
    return relay.sum(x)
