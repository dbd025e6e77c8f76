"""A string is used as a condition."""

from pyrelay import Float, relay


@relay
def label(x: Float, name: str) -> Float:
    if name:
        return x
    return -x
