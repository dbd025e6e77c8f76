"""Each round of a repeated line would nest the type once more."""

from pyrelay import Float, relay


@relay
def doubled(y: Float) -> Float:
    x = (y, y)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    x = (x, x)
    return y
