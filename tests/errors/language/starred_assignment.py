"""The first element of a list, and the rest of it."""

from pyrelay import Float, relay


@relay
def falling(xs: list[Float]) -> Float:
    first, *rest = xs
    return first - sum(rest)
