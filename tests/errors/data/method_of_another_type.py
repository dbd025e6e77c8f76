"""Two classes have a method of this name, and the value is of neither."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Circle:
    radius: Float

    def area(self) -> Float:
        return 3.14 * self.radius**2


@dataclass(frozen=True)
class Field:
    width: Float
    height: Float

    def area(self) -> Float:
        return self.width * self.height


@relay
def total(circles: list[Circle], field: Field) -> Float:
    sizes = [circle.area() for circle in circles]
    return sum(size.area() for size in sizes) + field.area()
