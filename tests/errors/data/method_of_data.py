"""Functions stand outside of the class."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float

    def across(self) -> float:
        return self.x + self.y


@relay
def size(p: Point) -> Float:
    return p.across()
