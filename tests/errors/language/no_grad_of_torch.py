"""A function of torch that has no use here."""

from pyrelay import Float, relay


@relay
def f(x: Float) -> Float:
    return relay.no_grad(x)
