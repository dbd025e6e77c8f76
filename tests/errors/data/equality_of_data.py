"""Data is compared by `relay.equal`."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def same(p: Point, q: Point) -> bool:
    return p == q
