"""No assignment inside an expression."""

from pyrelay import Float, relay


@relay
def twice(x: Float) -> Float:
    return (y := x * 2.0) + y
