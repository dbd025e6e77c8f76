"""One path gives a value, the other falls off the end."""

from pyrelay import Float, relay


@relay
def clamp(x: Float) -> Float:
    if x > 1.0:
        return 1.0
