"""A record has the fields that its class has."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@dataclass(frozen=True)
class Other:
    z: Float


@relay
def across(p: Point) -> Float:
    return p.x + p.z
