"""The backward rule returns a cotangent for an integer, which has none."""

from pyrelay import Float, Int, relay


@relay
def fwd(x: Float, k: Int) -> tuple[Float, Int]:
    return x * k, k


@relay
def bwd(k: Int, g: Float) -> tuple[Float, Int]:
    return g * k, 0


@relay.custom_vjp(fwd, bwd)
@relay
def times(x: Float, k: Int) -> Float:
    return x * k
