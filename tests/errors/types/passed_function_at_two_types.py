"""A function that is passed is called at two types."""

from typing import TypeVar

from pyrelay import Float, Fn, relay

T = TypeVar("T")


@relay
def both(f: Fn[[T], T], x: Float) -> Float:
    a, b = f(x), f("a")
    return a
