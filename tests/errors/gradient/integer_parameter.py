"""An integer has no gradient."""

from pyrelay import Float, Int, relay


@relay
def power(x: Float, n: Int) -> Float:
    return x * n


@relay
def use(x: Float, n: Int):
    return relay.grad(power, wrt="n")(x, n)
