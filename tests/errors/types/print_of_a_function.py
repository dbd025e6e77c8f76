"""A function has no text."""

from pyrelay import Float, Fn, relay


@relay
def apply(f: Fn[[Float], Float], x: Float) -> Float:
    print("calling", f)
    return f(x)
