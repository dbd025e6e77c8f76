"""A function of the language is decorated again."""

from pyrelay import Float, relay


@relay
@relay
def double(x: Float) -> Float:
    return x + x
