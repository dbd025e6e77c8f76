"""A misspelt operator of the namespace."""

from pyrelay import Float, relay


@relay
def squash(x: Float) -> Float:
    return relay.tahn(x)
