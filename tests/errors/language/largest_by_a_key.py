"""Python's `max` with a key."""

from pyrelay import Float, relay


@relay
def farthest(x: Float, y: Float) -> Float:
    return max(x, y, key=lambda v: v * v)
