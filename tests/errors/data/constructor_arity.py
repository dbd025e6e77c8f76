"""A constructor takes what its class takes."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def origin(x: Float) -> Point:
    return Point(x, x, x)


@relay
def half(x: Float) -> Point:
    return Point(x=x)


@relay
def named(x: Float) -> Point:
    return Point(x, z=x)
