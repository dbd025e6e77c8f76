"""A helper that was not decorated."""

from pyrelay import Float, relay


def square(x):
    return x * x


@relay
def area(x: Float) -> Float:
    return square(x)
