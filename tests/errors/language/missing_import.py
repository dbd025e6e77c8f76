"""A module is used that the file does not import."""

from pyrelay import Float, relay


@relay
def root(x: Float) -> Float:
    return math.sqrt(x)
