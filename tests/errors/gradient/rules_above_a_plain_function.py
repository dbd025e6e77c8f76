"""`@relay` is missing under the derivative."""

from pyrelay import Float, relay


@relay
def fwd(x: Float) -> tuple[Float, Float]:
    return x * x, x


@relay
def bwd(x: Float, g: Float) -> Float:
    return g * x * 2.0


@relay.custom_vjp(fwd, bwd)
def square(x: Float) -> Float:
    return x * x
