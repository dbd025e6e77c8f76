"""A record has a method that is called like one of tensors."""

from dataclasses import dataclass, replace

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    """A point of the plane."""

    x: Float
    y: Float

    def norm(self) -> Float:
        """Give the distance to the origin."""
        return self.x


@relay
def moved(p: Point) -> Float:
    q = replace(p, x=2.0)
    return p.norm() + q.x
