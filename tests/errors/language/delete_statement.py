"""Values go when they are last used."""

from pyrelay import Float, relay


@relay
def twice(x: Float) -> Float:
    y = x * 2.0
    del x
    return y
