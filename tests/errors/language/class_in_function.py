"""A class inside a function."""

from pyrelay import Float, relay


@relay
def boxed(x: Float) -> Float:
    class Box:
        pass

    return x
