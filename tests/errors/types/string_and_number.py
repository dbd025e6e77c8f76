"""Strings and numbers meet."""

from pyrelay import Float, relay


@relay
def label(x: Float, name: str) -> str:
    if name == 3:
        return name
    return name + x
