"""A name that nothing resembles."""

from pyrelay import Float, relay


@relay
def area(width: Float) -> Float:
    return width * unheard_of
