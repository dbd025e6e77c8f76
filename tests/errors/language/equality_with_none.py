"""Whether an optional is there is asked with `==`."""

from pyrelay import Float, relay


@relay
def value(x: Float | None) -> Float:
    if x == None:
        return 0.0
    return x
