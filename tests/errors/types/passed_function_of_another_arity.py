"""A function of two arguments is passed where one of one argument is called."""

from typing import TypeVar

from pyrelay import Float, Fn, relay

A = TypeVar("A")
B = TypeVar("B")


@relay
def applied(f: Fn[[A], B], x: A) -> B:
    return f(x)


@relay
def use(x: Float) -> Float:
    return applied(lambda a, b: a + b, x)
