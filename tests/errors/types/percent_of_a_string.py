"""A text formatted by `%`."""

from pyrelay import Float, relay


@relay
def report(x: Float) -> Float:
    print("x is %f" % x)
    return x
