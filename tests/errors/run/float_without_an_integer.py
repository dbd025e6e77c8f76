"""Infinity has no integer."""

from pyrelay import Float, relay


@relay
def steps(width: Float) -> int:
    return int(1.0 / width)


steps(0.0)
