"""The length of a number."""

from pyrelay import Int, relay


@relay
def count(n: Int) -> int:
    return len(n)
