"""A number is no condition."""

from pyrelay import Int, relay


@relay
def nonzero(n: Int) -> Int:
    if n:
        return 1
    return 0
