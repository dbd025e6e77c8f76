"""Python's `max` with an argument that it does not have."""

from pyrelay import Float, relay


@relay
def farthest(x: Float, y: Float) -> Float:
    return max(x, y, by=lambda v: v * v)
