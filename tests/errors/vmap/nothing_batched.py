"""No argument has an axis."""

from pyrelay import Float, relay


@relay
def double(x: Float) -> Float:
    return x + x


@relay
def doubles(x: Float) -> Float:
    return relay.vmap(double, in_axes=None)(x)
