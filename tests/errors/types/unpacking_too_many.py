"""Three names for two values."""

from pyrelay import Float, relay


@relay
def swap(p: tuple[Float, Float]) -> Float:
    a, b, c = p
    return a
