"""A data type never changes."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass
class Point:
    x: Float
    y: Float


@relay
def across(p: Point) -> Float:
    return p.x + p.y
