"""A number is called."""

from pyrelay import Float, relay


@relay
def twice(x: Float) -> Float:
    return x(2.0)
