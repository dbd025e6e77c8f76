"""A class is in two unions."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Circle:
    radius: Float


@dataclass(frozen=True)
class Square:
    side: Float


@dataclass(frozen=True)
class Line:
    length: Float


Shape = Circle | Square
Curve = Circle | Line


@relay
def size(c: Circle) -> Float:
    return c.radius
