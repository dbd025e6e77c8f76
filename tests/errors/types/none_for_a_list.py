"""The empty tuple is None, and no list."""

from pyrelay import Float, relay


@relay
def added(xs: tuple[Float, ...]) -> Float:
    return sum(xs)


@relay
def nothing() -> Float:
    return added(())
