"""A default for an optional by `or`."""

from pyrelay import Float, relay


@relay
def value(rate: Float | None) -> Float:
    return rate or 1.0
