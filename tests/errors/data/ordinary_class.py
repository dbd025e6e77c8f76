"""Only dataclasses are data."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


class Point:
    def __init__(self, x: float) -> None:
        self.x = x


@relay
def across(x: Float) -> Float:
    p = Point(x)
    return p.x


@relay
def taken(p: Point) -> Float:
    return p.x
