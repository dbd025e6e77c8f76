"""A name is None before a loop that assigns a value to it."""

from pyrelay import Int, relay


@relay
def last(xs: list[Int]):
    found = None
    for x in xs:
        found = x
    return found
