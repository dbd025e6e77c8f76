"""Compiled functions do not assign names of the module."""

from pyrelay import Float, relay


count = 0


@relay
def counted(x: Float) -> Float:
    global count
    count = count + 1
    return x
