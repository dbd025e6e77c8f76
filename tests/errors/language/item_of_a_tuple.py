"""An item of a tuple is assigned."""

from pyrelay import Float, relay


@relay
def first(pair: tuple[Float, Float]) -> Float:
    pair[0] = 3.0
    return pair[0]
