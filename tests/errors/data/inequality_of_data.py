"""`!=` of data has a comparison of whole values to negate."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def differs(p: Point, q: Point) -> bool:
    return p != q
