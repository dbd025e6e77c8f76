"""A record has no field of that name, and neither has any other class."""

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    """A point of the plane."""

    x: Float
    y: Float


@relay
def height(p: Point) -> Float:
    return p.z
