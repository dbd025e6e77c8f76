"""A method is called with an argument too many."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Line:
    slope: Float

    def at(self, x: Float, shift: Float = 0.0) -> Float:
        return self.slope * x + shift


@relay
def value(line: Line) -> Float:
    return line.at(1.0, 2.0, 3.0)
