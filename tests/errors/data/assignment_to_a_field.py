"""Data never changes."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def moved(p: Point) -> Point:
    p.x = p.x + 1
    return p
