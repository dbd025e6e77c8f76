"""An assignment that is evaluated only sometimes stands in a statement."""

from pyrelay import Float, relay


@relay
def twice(x: Float) -> Float:
    if x > 0.0 and (y := x * 2.0) > 1.0:
        return y
    return x
