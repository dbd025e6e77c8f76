"""Exceptions are not caught in compiled code."""

from pyrelay import Float, relay


@relay
def guarded(x: Float) -> Float:
    try:
        return 1.0 / x
    except ZeroDivisionError:
        return 0.0
