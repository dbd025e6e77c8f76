"""A tuple has no such field."""

from pyrelay import Float, relay


@relay
def third(p: tuple[Float, Float]) -> Float:
    return p[2]
