"""A tensor is no record."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    across: Float


@relay
def of(p: Point, x: Float) -> Float:
    return p.across + x.across
