"""`==` of instances that Python compares by identity."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True, eq=False)
class Point:
    x: Float
    y: Float


@relay
def same(p: Point, q: Point) -> bool:
    return p == q
