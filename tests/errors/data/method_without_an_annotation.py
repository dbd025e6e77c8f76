"""The parameters of a method are annotated, but for `self`."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float

    def scaled(self, factor) -> Point:
        return Point(self.x * factor, self.y * factor)


@relay
def size(p: Point) -> Float:
    return p.scaled(2.0).x
