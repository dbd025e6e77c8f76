"""A list without elements, of which nothing tells what it would hold."""

from pyrelay import Float, relay


@relay
def total(x: Float) -> Float:
    losses = []
    return x + max(losses)
