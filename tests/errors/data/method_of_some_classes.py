"""A method that only some classes of a union define is called of a value of any of them."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Circle:
    radius: Float

    def area(self) -> Float:
        return 3.14 * self.radius**2


@dataclass(frozen=True)
class Square:
    side: Float

    def area(self) -> Float:
        return self.side**2


@dataclass(frozen=True)
class Segment:
    length: Float


Shape = Circle | Square | Segment


@relay
def total(shapes: list[Shape]) -> Float:
    return sum(shape.area() for shape in shapes)
