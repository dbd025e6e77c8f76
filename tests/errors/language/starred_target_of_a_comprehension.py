"""The first element of each list, and the rest of it."""

from pyrelay import Float, relay


@relay
def falling(rows: list[list[Float]]) -> Float:
    return sum([first - sum(rest) for first, *rest in rows])
