"""A union joins alternatives."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Shape:
    name: str


@dataclass(frozen=True)
class Circle(Shape):
    radius: Float


@relay
def size(c: Circle) -> Float:
    return c.radius
