"""A function and a value of a user's class are no conditions."""

from dataclasses import dataclass

from pyrelay import Float, Fn, relay


@dataclass(frozen=True)
class Circle:
    radius: Float


@relay
def chosen(f: Fn[[Float], Float], circle: Circle, x: Float) -> Float:
    y = f(x) if f else x
    return y if circle else 0.0
